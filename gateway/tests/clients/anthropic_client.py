"""Anthropic's Python client, unchanged, against a local gateway over the folder `models`.

Run by `cargo xtask test`, which starts the gateway and says where it is.
"""

import os
import unittest

import anthropic

# A bound on every call, far above what any takes: what hangs fails.
PATIENCE = 60.0

CLIENT = anthropic.Anthropic(
    base_url=os.environ["FLEXINFER_URL"],
    api_key="unused",
    max_retries=0,
    timeout=PATIENCE,
)

ASKING = [{"role": "user", "content": "Say something"}]


class Models(unittest.TestCase):
    def test_every_model_is_listed_on_one_page(self):
        page = CLIENT.models.list()
        self.assertLessEqual({"chat", "asleep", "left"}, {model.id for model in page})
        self.assertFalse(page.has_more)
        self.assertEqual({model.type for model in page}, {"model"})

    def test_one_model_is_retrieved_by_name(self):
        model = CLIENT.models.retrieve("chat")
        self.assertEqual((model.id, model.type, model.display_name), ("chat", "model", "chat"))


class Messages(unittest.TestCase):
    def test_a_message_is_answered(self):
        answer = CLIENT.messages.create(model="chat", max_tokens=12, messages=ASKING)
        self.assertTrue(answer.content[0].text)
        self.assertEqual(answer.usage.output_tokens, 12)
        self.assertEqual(answer.stop_reason, "max_tokens")

    def test_a_message_is_streamed_word_by_word(self):
        asked = CLIENT.messages.stream(model="gpt-4o-mini", max_tokens=20, messages=ASKING)
        with asked as stream:
            words = list(stream.text_stream)
            answer = stream.get_final_message()
        self.assertGreater(len(words), 5)
        self.assertEqual("".join(words), answer.content[0].text)

    def test_tokens_are_counted(self):
        counted = CLIENT.messages.count_tokens(model="chat", messages=ASKING)
        self.assertGreater(counted.input_tokens, 0)


class Failures(unittest.TestCase):
    def test_an_unknown_model_is_not_found(self):
        with self.assertRaises(anthropic.NotFoundError) as caught:
            CLIENT.messages.create(model="nobody", max_tokens=1, messages=ASKING)
        error = caught.exception
        self.assertEqual(error.body["type"], "error")
        self.assertEqual(error.body["error"]["type"], "not_found_error")
        self.assertIn("nobody", error.body["error"]["message"])
        self.assertEqual(error.body["request_id"], error.response.headers["x-request-id"])
        with self.assertRaises(anthropic.NotFoundError):
            CLIENT.models.retrieve("nobody")

    def test_a_model_that_cannot_load_is_overloaded_with_its_reason(self):
        with self.assertRaises(anthropic.APIStatusError) as caught:
            CLIENT.messages.create(model="broken", max_tokens=1, messages=ASKING)
        error = caught.exception
        self.assertEqual(error.status_code, 503)
        self.assertEqual(error.body["error"]["type"], "overloaded_error")
        self.assertEqual(error.response.headers["x-flexinfer-error-code"], "activation_failed")

    def test_what_the_engine_refuses_comes_in_its_own_words(self):
        with self.assertRaises(anthropic.BadRequestError) as caught:
            CLIENT.messages.create(model="chat", max_tokens=0, messages=ASKING)
        self.assertIn("max_tokens", caught.exception.body["error"]["message"])


if __name__ == "__main__":
    unittest.main()
