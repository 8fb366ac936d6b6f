"""A client of ComfyUI, unchanged, against a local gateway over the folder `models`.

Run by `cargo xtask test`, which starts the gateway and says where it is.
"""

import os
import unittest

from comfy_toolkit import ComfyClient, ComfySubmitError

PATIENCE = 60.0


def client(model="chat"):
    # All that it takes: the address of the one model instead of ComfyUI's own.
    return ComfyClient(f"{os.environ['FLEXINFER_URL']}/model/{model}", timeout=PATIENCE)


def graph(steps):
    return {
        "3": {"class_type": "KSampler", "inputs": {"seed": 3, "steps": steps, "latent_image": ["5", 0]}},
        "5": {"class_type": "EmptyLatentImage", "inputs": {"width": 64, "height": 64, "batch_size": 1}},
        "8": {"class_type": "VAEDecode", "inputs": {"samples": ["3", 0]}},
        "9": {"class_type": "SaveImage", "inputs": {"images": ["8", 0]}},
    }


class Session(unittest.TestCase):
    def test_a_graph_is_followed_to_its_picture(self):
        steps, nodes = [], []
        comfy = client()
        result = comfy.submit_and_track(
            graph(4),
            on_progress=lambda step, total: steps.append((step, total)),
            on_node=nodes.append,
            overall_timeout=PATIENCE,
        )
        self.assertEqual(steps, [(1, 4), (2, 4), (3, 4), (4, 4)])
        self.assertIn("9", nodes)
        self.assertEqual(result["status"], "completed")
        picture = comfy.download(result["images"][0])
        self.assertTrue(picture.startswith(b"\x89PNG"))

    def test_a_graph_is_waited_for_without_a_socket(self):
        comfy = client()
        images = comfy.wait_for_images(comfy.submit(graph(1)), poll_interval=0.05, max_wait=PATIENCE)
        self.assertTrue(comfy.download(images[0]).startswith(b"\x89PNG"))

    def test_what_the_engine_says_of_itself_is_passed_on(self):
        comfy = client()
        self.assertTrue(comfy.is_online(timeout=PATIENCE))
        self.assertEqual(comfy.queue_status(timeout=PATIENCE)["pending"], 0)
        comfy.interrupt(timeout=PATIENCE)

    def test_a_graph_that_cannot_run_is_refused_by_the_engine_and_an_unknown_model_by_the_gateway(self):
        with self.assertRaisesRegex(ComfySubmitError, "prompt_no_outputs"):
            client().submit({"1": {"class_type": "KSampler", "inputs": {}}})
        with self.assertRaisesRegex(ComfySubmitError, "model_not_found"):
            client("nobody").submit(graph(1))


if __name__ == "__main__":
    unittest.main()
