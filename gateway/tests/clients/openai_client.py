"""OpenAI's Python client, unchanged, against a local gateway over the folder `models`.

Run by `cargo xtask test`, which starts the gateway and says where it is.
"""

import base64
import io
import os
import threading
import time
import unittest
import wave

import openai

# A bound on every call, far above what any takes: what hangs fails.
PATIENCE = 60.0

CLIENT = openai.OpenAI(
    base_url=os.environ["FLEXINFER_URL"] + "/v1",
    api_key="unused",
    max_retries=0,
    timeout=PATIENCE,
)


def asking(text):
    return [{"role": "user", "content": text}]


def chat(model, text="Say something", client=CLIENT, **more):
    return client.chat.completions.create(model=model, messages=asking(text), **more)


class Models(unittest.TestCase):
    def test_every_model_is_listed_while_it_sleeps(self):
        listed = {model.id for model in CLIENT.models.list()}
        self.assertLessEqual({"chat", "asleep", "left", "right", "narrow", "broken"}, listed)

    def test_one_model_is_retrieved_by_name(self):
        model = CLIENT.models.retrieve("right")
        self.assertEqual((model.id, model.object), ("right", "model"))


class Answers(unittest.TestCase):
    def test_a_chat_is_answered(self):
        answer = chat("chat", max_tokens=12)
        self.assertTrue(answer.choices[0].message.content)
        self.assertEqual(answer.usage.completion_tokens, 12)

    def test_an_alias_reaches_its_model(self):
        self.assertTrue(chat("gpt-4o-mini").choices[0].message.content)

    def test_a_chat_is_streamed_word_by_word(self):
        stream = chat("chat", stream=True, stream_options={"include_usage": True}, max_tokens=20)
        chunks = list(stream)
        words = [chunk.choices[0].delta.content for chunk in chunks if chunk.choices]
        reasons = [chunk.choices[0].finish_reason for chunk in chunks if chunk.choices]
        self.assertGreater(len([word for word in words if word]), 5)
        self.assertEqual(reasons[-1], "length")
        self.assertEqual(chunks[-1].usage.completion_tokens, 20)

    def test_a_completion_is_answered(self):
        answer = CLIENT.completions.create(model="chat", prompt="Once upon a time", max_tokens=8)
        self.assertTrue(answer.choices[0].text)

    def test_a_response_is_made_and_streamed(self):
        whole = CLIENT.responses.create(model="chat", input="Hello")
        self.assertTrue(whole.output_text)
        events = [event.type for event in CLIENT.responses.create(model="chat", input="Hello", stream=True)]
        self.assertIn("response.output_text.delta", events)
        self.assertEqual(events[-1], "response.completed")

    def test_a_stored_response_is_got_gone_on_from_cancelled_and_deleted(self):
        made = CLIENT.responses.create(model="chat", input="Hello")
        self.assertEqual(CLIENT.responses.retrieve(made.id).output_text, made.output_text)
        more = CLIENT.responses.create(model="chat", input="More", previous_response_id=made.id)
        self.assertEqual(more.previous_response_id, made.id)
        begun = CLIENT.responses.create(model="chat", input="Go on", background=True)
        self.assertIn(CLIENT.responses.cancel(begun.id).status, ("cancelled", "completed"))
        CLIENT.responses.delete(made.id)
        for unknown in (made.id, "resp_of_nobody"):
            with self.assertRaises(openai.NotFoundError):
                CLIENT.responses.retrieve(unknown)

    def test_a_response_is_made_in_the_background(self):
        made = CLIENT.responses.create(model="chat", input="Hello", background=True, max_output_tokens=8)
        deadline = time.monotonic() + PATIENCE
        while made.status in ("queued", "in_progress"):
            self.assertIsNone(made.usage)
            self.assertLess(time.monotonic(), deadline)
            time.sleep(0.01)
            made = CLIENT.responses.retrieve(made.id)
        self.assertTrue(made.output_text)
        self.assertIn(made.usage.output_tokens, range(1, 9))

    def test_texts_are_embedded(self):
        answer = CLIENT.embeddings.create(model="chat", input=["one", "two"])
        first, second = (row.embedding for row in answer.data)
        self.assertEqual(len(first), len(second))
        self.assertNotEqual(first, second)

    def test_an_image_is_made(self):
        answer = CLIENT.images.generate(
            model="chat", prompt="a boat", size="256x256", response_format="b64_json"
        )
        self.assertEqual(picture(answer)[:8], b"\x89PNG\r\n\x1a\n")

    def test_an_image_is_edited_by_a_form(self):
        made = CLIENT.images.generate(
            model="chat", prompt="a boat", size="256x256", response_format="b64_json"
        )
        edited = CLIENT.images.edit(
            model="chat",
            image=("boat.png", picture(made), "image/png"),
            prompt="at night",
            size="256x256",
            response_format="b64_json",
        )
        self.assertEqual(picture(edited)[:8], b"\x89PNG\r\n\x1a\n")

    def test_speech_is_made_and_transcribed(self):
        spoken = CLIENT.audio.speech.create(
            model="chat", voice="alloy", input="Hello there", response_format="wav"
        ).read()
        with wave.open(io.BytesIO(spoken)) as sound:
            self.assertGreater(sound.getnframes(), 0)
        text = CLIENT.audio.transcriptions.create(
            model="chat", file=("hello.wav", spoken, "audio/wav")
        )
        self.assertTrue(text.text)

    def test_a_body_above_64_kib_arrives_whole(self):
        answer = chat("chat", "word " * 30_000, max_tokens=2, extra_body={"padding": "x" * 300_000})
        self.assertGreater(answer.usage.prompt_tokens, 20_000)


class Waking(unittest.TestCase):
    def test_a_sleeping_model_is_woken_by_its_first_request(self):
        self.assertTrue(chat("asleep", max_tokens=4).choices[0].message.content)

    def test_two_models_of_one_gpu_asked_in_turn_both_answer(self):
        for model in ["left", "right", "left", "right"]:
            self.assertTrue(chat(model, max_tokens=4).choices[0].message.content, model)


class Failures(unittest.TestCase):
    def test_an_unknown_model_is_not_found(self):
        with self.assertRaises(openai.NotFoundError) as caught:
            chat("nobody")
        self.assertEqual(caught.exception.code, "model_not_found")
        self.assertIn("nobody", str(caught.exception))
        self.assertTrue(caught.exception.request_id)
        with self.assertRaises(openai.NotFoundError):
            CLIENT.models.retrieve("nobody")

    def test_a_body_without_a_model_is_a_bad_request(self):
        with self.assertRaises(openai.BadRequestError) as caught:
            CLIENT.post("/chat/completions", body={"messages": asking("Hi")}, cast_to=object)
        self.assertEqual(caught.exception.type, "invalid_request_error")

    def test_a_model_that_cannot_load_is_a_server_error_with_its_reason(self):
        with self.assertRaises(openai.InternalServerError) as caught:
            chat("broken")
        self.assertEqual(caught.exception.status_code, 503)
        self.assertEqual(caught.exception.code, "activation_failed")

    def test_a_refusal_with_retry_after_is_tried_again_until_it_is_served(self):
        patient = CLIENT.with_options(max_retries=20)
        # Nobody may wait, not even for a cold start, which the first try begins all the same.
        chat("unqueued", client=patient, max_tokens=1)
        first = chat("unqueued", stream=True, max_tokens=20)
        next(first)
        with self.assertRaises(openai.InternalServerError) as caught:
            chat("unqueued", max_tokens=1)
        self.assertEqual(caught.exception.code, "queue_full")
        self.assertGreater(int(caught.exception.response.headers["retry-after"]), 0)
        reading = threading.Thread(target=lambda: list(first))
        reading.start()
        raw = patient.chat.completions.with_raw_response
        answer = raw.create(model="unqueued", messages=asking("Hi"), max_tokens=1)
        reading.join()
        self.assertEqual(answer.status_code, 200)
        self.assertGreater(answer.retries_taken, 0)


class Leaving(unittest.TestCase):
    def test_closing_a_stream_gives_its_slot_to_the_next(self):
        # Left alone it would go on for minutes, far past the patience of the next request.
        endless = chat("narrow", stream=True, max_tokens=20_000)
        next(endless)
        endless.close()
        self.assertTrue(chat("narrow", max_tokens=2).choices[0].message.content)

    def test_a_client_that_gives_up_waiting_leaves_the_queue(self):
        holding = chat("narrow", stream=True, max_tokens=20_000)
        next(holding)
        with self.assertRaises(openai.APITimeoutError):
            chat("narrow", client=CLIENT.with_options(timeout=0.5))
        holding.close()
        self.assertTrue(chat("narrow", max_tokens=2).choices[0].message.content)


def picture(answer):
    return base64.b64decode(answer.data[0].b64_json)


if __name__ == "__main__":
    unittest.main()
