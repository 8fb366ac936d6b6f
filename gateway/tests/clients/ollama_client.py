"""Ollama's Python client, unchanged, against a local gateway over the folder `models`.

Run by `cargo xtask test`, which starts the gateway and says where it is.
"""

import os
import unittest

import ollama

# A bound on every call, far above what any takes: what hangs fails.
PATIENCE = 60.0

CLIENT = ollama.Client(host=os.environ["FLEXINFER_URL"], timeout=PATIENCE)

ASKING = [{"role": "user", "content": "Say something"}]


class Lists(unittest.TestCase):
    def test_every_model_is_listed_while_it_sleeps(self):
        listed = {model.model for model in CLIENT.list().models}
        self.assertLessEqual({"chat", "asleep", "left", "right"}, listed)

    def test_a_model_is_shown_with_what_it_can_do(self):
        shown = CLIENT.show("chat")
        self.assertIn("completion", shown.capabilities)

    def test_only_models_that_are_awake_run(self):
        CLIENT.chat("chat", messages=ASKING, options={"num_predict": 1})
        running = {model.model for model in CLIENT.ps().models}
        self.assertIn("chat", running)
        self.assertNotIn("broken", running)


class Answers(unittest.TestCase):
    def test_a_chat_is_answered(self):
        answer = CLIENT.chat("chat", messages=ASKING, options={"num_predict": 12})
        self.assertTrue(answer.message.content)
        self.assertEqual((answer.eval_count, answer.done_reason), (12, "length"))

    def test_a_chat_is_streamed_word_by_word(self):
        asked = {"messages": ASKING, "stream": True, "options": {"num_predict": 20}}
        pieces = list(CLIENT.chat("gpt-4o-mini", **asked))
        self.assertGreater(len([piece for piece in pieces if piece.message.content]), 5)
        self.assertTrue(pieces[-1].done)

    def test_a_text_is_generated(self):
        self.assertTrue(CLIENT.generate("chat", "Once upon a time").response)

    def test_the_default_tag_may_be_named(self):
        self.assertTrue(CLIENT.generate("chat:latest", "Once upon a time").response)

    def test_texts_are_embedded(self):
        first, second = CLIENT.embed("chat", ["one", "two"]).embeddings
        self.assertEqual(len(first), len(second))
        self.assertNotEqual(first, second)


class Failures(unittest.TestCase):
    def test_an_unknown_model_is_not_found(self):
        for ask in [lambda: CLIENT.chat("nobody", messages=ASKING), lambda: CLIENT.show("nobody")]:
            with self.assertRaises(ollama.ResponseError) as caught:
                ask()
            self.assertEqual(caught.exception.status_code, 404)
            self.assertIn("nobody", caught.exception.error)

    def test_a_model_that_cannot_load_says_why(self):
        with self.assertRaises(ollama.ResponseError) as caught:
            CLIENT.chat("broken", messages=ASKING, stream=False)
        self.assertEqual(caught.exception.status_code, 503)
        self.assertIn("cannot be started", caught.exception.error)


if __name__ == "__main__":
    unittest.main()
