"""The gateway in front of a real `llama-server`: woken, swapped, put to sleep, killed while loading.

Run by `cargo xtask test-llamacpp`, which builds the engine, writes the models `first` and `second` (one GPU)
and `napping` (asleep after two seconds), starts the gateway and says where it is. What runs is seen in the
machine's list of processes, not asked of the gateway.
"""

import json
import os
import signal
import time
import unittest
import urllib.error
import urllib.request

URL = os.environ["FLEXINFER_URL"]
GATEWAY = int(os.environ["FLEXINFER_PID"])

# A bound on every wait, far above what any takes.
PATIENCE = 120


def chat(model, stream=False):
    """Status, and the answer or the error, of one short chat."""
    body = {"model": model, "messages": [{"role": "user", "content": "Name a fruit."}]}
    # A model of random weights would now and then end its answer with the first token.
    body |= {"max_tokens": 12, "stream": stream, "ignore_eos": True, "temperature": 0, "seed": 1}
    headers = {"Content-Type": "application/json"}
    request = urllib.request.Request(URL + "/v1/chat/completions", json.dumps(body).encode(), headers)
    try:
        with urllib.request.urlopen(request, timeout=PATIENCE) as answer:
            text = answer.read().decode()
            return answer.status, text if stream else json.loads(text)
    except urllib.error.HTTPError as error:
        return error.code, json.loads(error.read())


def engines(model):
    """The processes of a model's engine: a llama-server below the gateway that was given its weights."""
    found = []
    for entry in os.listdir("/proc"):
        if not entry.isdigit():
            continue
        try:
            with open(f"/proc/{entry}/cmdline", "rb") as file:
                words = file.read().split(b"\0")
        except OSError:
            continue  # It ended between the listing and the look.
        program = os.path.basename(words[0])
        if program == b"llama-server" and any(word.endswith(f"/{model}.gguf".encode()) for word in words):
            if below_gateway(int(entry)):
                found.append(int(entry))
    return found


def below_gateway(pid):
    while pid > 1:
        if pid == GATEWAY:
            return True
        try:
            with open(f"/proc/{pid}/stat") as file:
                pid = int(file.read().rpartition(")")[2].split()[1])
        except OSError:
            return False
    return False


def wait_until(holds, what):
    begun = time.monotonic()
    while not holds():
        if time.monotonic() - begun > PATIENCE:
            raise AssertionError(f"never came true: {what}")
        time.sleep(0.002)


class LlamaServer(unittest.TestCase):
    def test_a_sleeping_model_is_woken_by_a_request_and_answers(self):
        self.assertEqual(engines("napping"), [])
        status, answer = chat("napping")
        self.assertEqual(status, 200, answer)
        self.assertGreater(answer["usage"]["completion_tokens"], 0)

    def test_an_answer_is_streamed(self):
        status, text = chat("first", stream=True)
        self.assertEqual(status, 200, text)
        self.assertGreater(text.count("data: "), 2)
        self.assertTrue(text.rstrip().endswith("data: [DONE]"), text[-200:])

    def test_two_models_of_one_gpu_take_turns(self):
        for model, other in [("first", "second"), ("second", "first"), ("first", "second")]:
            status, answer = chat(model)
            self.assertEqual(status, 200, answer)
            self.assertEqual(len(engines(model)), 1, f"{model} runs once")
            self.assertEqual(engines(other), [], f"{other} left the GPU")

    def test_an_idle_model_is_put_to_sleep_and_wakes_again(self):
        self.assertEqual(chat("napping")[0], 200)
        wait_until(lambda: not engines("napping"), "the idle engine ended")
        self.assertEqual(chat("napping")[0], 200)

    def test_an_engine_killed_while_it_loads_is_told_and_the_next_request_is_served(self):
        refused = None
        for _ in range(20):
            wait_until(lambda: not engines("napping"), "the model sleeps")
            refused = self.chat_and_kill_while_loading()
            if refused is not None:
                break
        self.assertIsNotNone(refused, "no engine could be killed before it was ready")
        status, error = refused
        self.assertEqual(status, 503, error)
        self.assertEqual(error["error"]["code"], "activation_failed")

        def served():
            status, answer = chat("napping")
            self.assertIn(status, (200, 503), answer)
            return status == 200

        wait_until(served, "the model serves again")

    def chat_and_kill_while_loading(self):
        """What a request was told whose engine was killed at once, or None if it served before that."""
        child = os.fork()
        if child == 0:
            wait_until(lambda: engines("napping"), "the engine started")
            for pid in engines("napping"):
                os.kill(pid, signal.SIGKILL)
            os._exit(0)
        status, answer = chat("napping")
        os.waitpid(child, 0)
        # 200 and 502: the engine was ready, and had answered or begun to.
        return None if status in (200, 502) else (status, answer)


if __name__ == "__main__":
    unittest.main()
