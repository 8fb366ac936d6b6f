"""curl over HTTP/1.0, 1.1 and 2 against a local gateway over the folder `models`.

Run by `cargo xtask test`, which starts the gateway and says where it is.
"""

import json
import os
import subprocess
import unittest

URL = os.environ["FLEXINFER_URL"]

# A bound on every call, far above what any takes: what hangs fails.
PATIENCE = "60"

VERSIONS = {
    "--http1.0": {"1.0", "1.1"},
    "--http1.1": {"1.1"},
    "--http2-prior-knowledge": {"2"},
}


def curl(*arguments, stdin=None):
    """Body, status and version of an answer."""
    told = "\n%{http_code} %{http_version}"
    command = ["curl", "--silent", "--show-error", "--max-time", PATIENCE, "--write-out", told]
    done = subprocess.run([*command, *arguments], input=stdin, capture_output=True, check=True)
    body, _, last = done.stdout.decode().rpartition("\n")
    status, version = last.split()
    return body, int(status), version


def asking(**more):
    body = {"model": "chat", "messages": [{"role": "user", "content": "Hi"}], "max_tokens": 8}
    return json.dumps({**body, **more})


class Curl(unittest.TestCase):
    def test_a_chat_is_answered_over_every_version(self):
        for version, spoken in VERSIONS.items():
            with self.subTest(version):
                body, status, answered = curl(
                    version, "--json", asking(), URL + "/v1/chat/completions"
                )
                self.assertEqual(status, 200, body)
                self.assertIn(answered, spoken)
                self.assertTrue(json.loads(body)["choices"][0]["message"]["content"])

    def test_a_stream_ends_over_every_version(self):
        for version in VERSIONS:
            with self.subTest(version):
                body, status, _ = curl(
                    version, "--no-buffer", "--json", asking(stream=True), URL + "/v1/chat/completions"
                )
                self.assertEqual(status, 200)
                self.assertTrue(body.rstrip().endswith("data: [DONE]"), body[-200:])

    def test_a_body_that_is_sent_in_chunks_arrives_whole(self):
        long = asking(padding="x" * 300_000).encode()
        for version in ["--http1.1", "--http2-prior-knowledge"]:
            with self.subTest(version):
                headers = ["--header", "content-type: application/json"]
                if version == "--http1.1":
                    headers += ["--header", "transfer-encoding: chunked"]
                body, status, _ = curl(
                    version, *headers, "--data-binary", "@-", URL + "/v1/chat/completions", stdin=long
                )
                self.assertEqual(status, 200, body)

    def test_a_large_body_is_invited_first(self):
        long = asking(padding="x" * 3_000_000).encode()
        headers = ["--header", "content-type: application/json", "--header", "expect: 100-continue"]
        body, status, _ = curl(
            "--http1.1", *headers, "--data-binary", "@-", URL + "/v1/chat/completions", stdin=long
        )
        self.assertEqual(status, 200, body)

    def test_head_is_answered_like_get_without_a_body(self):
        for version in VERSIONS:
            for path in ["/v1/models", "/healthz", "/api/tags"]:
                with self.subTest(version + path):
                    body, status, _ = curl(version, "--head", URL + path)
                    self.assertEqual(status, 200)
                    self.assertIn("content-length", body.lower())

    def test_what_is_refused_is_refused_over_every_version(self):
        for version in VERSIONS:
            with self.subTest(version):
                body, status, _ = curl(
                    version, "--json", '{"model": "nobody"}', URL + "/v1/chat/completions"
                )
                self.assertEqual((status, json.loads(body)["error"]["code"]), (404, "model_not_found"))


if __name__ == "__main__":
    unittest.main()
