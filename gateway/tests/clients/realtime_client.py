"""OpenAI's Python client over a WebSocket, unchanged, against a local gateway over the folder `models`.

Run by `cargo xtask test`, which starts the gateway and says where it is.
"""

import os
import unittest

import openai

CLIENT = openai.OpenAI(base_url=os.environ["FLEXINFER_URL"] + "/v1", api_key="unused", max_retries=0)


def said(text):
    return {"type": "message", "role": "user", "content": [{"type": "input_text", "text": text}]}


class Realtime(unittest.TestCase):
    def test_a_conversation_is_held_with_a_model_that_sleeps(self):
        with CLIENT.realtime.connect(model="chat") as connection:
            connection.session.update(session={"type": "realtime", "output_modalities": ["text"]})
            for turn in ["Say something", "And something else"]:
                connection.conversation.item.create(item=said(turn))
                connection.response.create(response={"max_output_tokens": 8})
                words = []
                for event in connection:
                    self.assertNotEqual(event.type, "error", event)
                    if event.type == "response.output_text.delta":
                        words.append(event.delta)
                    elif event.type == "response.done":
                        self.assertEqual(event.response.status, "completed")
                        self.assertEqual(event.response.usage.output_tokens, 8)
                        break
                self.assertEqual(len(words), 8)

    def test_a_model_that_nobody_has_is_refused(self):
        with self.assertRaisesRegex(Exception, "404"):
            with CLIENT.realtime.connect(model="nobody"):
                pass


if __name__ == "__main__":
    unittest.main()
