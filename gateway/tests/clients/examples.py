"""A folder of examples as its reader meets it: every model in it is offered, and in the quickstart, whose engines
are simulated, the three things that the README suggests work.

Run by `cargo xtask test`, which starts the gateway over the folder and says where both are.
"""

import base64
import os
import pathlib
import re
import unittest

import openai

FOLDER = pathlib.Path(os.environ["FLEXINFER_EXAMPLE"])
CLIENT = openai.OpenAI(
    base_url=os.environ["FLEXINFER_URL"] + "/v1", api_key="unused", max_retries=0, timeout=60
)


class Folder(unittest.TestCase):
    def test_every_model_of_the_folder_is_offered(self):
        texts = [path.read_text() for path in FOLDER.glob("*.yaml")]
        named = {re.search(r"^  name: (\S+)$", text, re.MULTILINE)[1] for text in texts}
        self.assertEqual({model.id for model in CLIENT.models.list()} & named, named)


class Quickstart(unittest.TestCase):
    def test_the_two_chat_models_of_one_gpu_answer_in_turn(self):
        for model in ["llama", "qwen", "llama"]:
            with self.subTest(model):
                answer = CLIENT.chat.completions.create(
                    model=model, messages=[{"role": "user", "content": "Hello"}], max_tokens=8
                )
                self.assertTrue(answer.choices[0].message.content)

    def test_a_chat_is_streamed(self):
        stream = CLIENT.chat.completions.create(
            model="qwen", messages=[{"role": "user", "content": "Hello"}], max_tokens=8, stream=True
        )
        self.assertGreater(len(list(stream)), 4)

    def test_an_image_is_painted(self):
        answer = CLIENT.images.generate(
            model="painter", prompt="a lighthouse", size="256x256", response_format="b64_json"
        )
        self.assertTrue(base64.b64decode(answer.data[0].b64_json).startswith(b"\x89PNG"))
