// OpenAI's Node client, unchanged, against a local gateway over the folder `models`.
// Run by `cargo xtask test`, which starts the gateway and says where it and the client are.

import assert from "node:assert/strict";
import { createRequire } from "node:module";
import { join } from "node:path";
import { test } from "node:test";

// The client lies outside the checkout, where an import would not look.
const require = createRequire(join(process.env.FLEXINFER_NODE_MODULES, "from-here.js"));
const { OpenAI, toFile } = require("openai");

const client = new OpenAI({
  baseURL: `${process.env.FLEXINFER_URL}/v1`,
  apiKey: "unused",
  maxRetries: 0,
  timeout: 60_000,
});

const messages = [{ role: "user", content: "Say something" }];
const chat = (model, more = {}, options = {}) =>
  client.chat.completions.create({ model, messages, ...more }, options);

test("every model is listed while it sleeps, and found by name", async () => {
  const listed = [];
  for await (const model of client.models.list()) listed.push(model.id);
  for (const name of ["chat", "asleep", "left", "right"]) assert.ok(listed.includes(name), name);
  assert.equal((await client.models.retrieve("left")).id, "left");
});

test("a sleeping model is woken by its first request", async () => {
  assert.ok((await chat("asleep", { max_tokens: 4 })).choices[0].message.content);
});

test("a chat is answered, under an alias too", async () => {
  for (const name of ["chat", "gpt-4o-mini"]) {
    const answer = await chat(name, { max_tokens: 12 });
    assert.ok(answer.choices[0].message.content);
    assert.equal(answer.usage.completion_tokens, 12);
  }
});

test("a chat is streamed word by word", async () => {
  const stream = await chat("chat", { stream: true, max_tokens: 20 });
  let words = 0;
  let reason = null;
  for await (const chunk of stream) {
    if (chunk.choices[0]?.delta?.content) words += 1;
    reason = chunk.choices[0]?.finish_reason ?? reason;
  }
  assert.ok(words > 5, `${words} pieces`);
  assert.equal(reason, "length");
});

test("a response is made and streamed", async () => {
  assert.ok((await client.responses.create({ model: "chat", input: "Hello" })).output_text);
  const stream = await client.responses.create({ model: "chat", input: "Hello", stream: true });
  const events = [];
  for await (const event of stream) events.push(event.type);
  assert.ok(events.includes("response.output_text.delta"));
  assert.equal(events.at(-1), "response.completed");
});

test("a stored response is got, gone on from, cancelled and deleted", async () => {
  const made = await client.responses.create({ model: "chat", input: "Hello" });
  assert.equal((await client.responses.retrieve(made.id)).output_text, made.output_text);
  const more = { model: "chat", input: "More", previous_response_id: made.id };
  assert.equal((await client.responses.create(more)).previous_response_id, made.id);
  const begun = await client.responses.create({ model: "chat", input: "Go on", background: true });
  assert.ok(["cancelled", "completed"].includes((await client.responses.cancel(begun.id)).status));
  await client.responses.delete(made.id);
  await assert.rejects(client.responses.retrieve(made.id), { status: 404 });
});

test("a response is made in the background", { timeout: 60_000 }, async () => {
  const ask = { model: "chat", input: "Hello", background: true, max_output_tokens: 8 };
  let made = await client.responses.create(ask);
  while (["queued", "in_progress"].includes(made.status)) {
    assert.equal(made.usage, null);
    await new Promise((resolve) => setTimeout(resolve, 10));
    made = await client.responses.retrieve(made.id);
  }
  assert.ok(made.output_text);
  assert.ok(made.usage.output_tokens > 0 && made.usage.output_tokens <= 8);
});

test("texts are embedded", async () => {
  // This client asks for base64 and decodes it itself.
  const answer = await client.embeddings.create({ model: "chat", input: ["one", "two"] });
  const [first, second] = answer.data.map((row) => row.embedding);
  assert.equal(first.length, second.length);
  assert.notDeepEqual(first, second);
});

test("an image is made, and edited by a form", async () => {
  const settings = { model: "chat", size: "256x256", response_format: "b64_json" };
  const made = picture(await client.images.generate({ ...settings, prompt: "a boat" }));
  const image = await toFile(made, "boat.png", { type: "image/png" });
  const edited = picture(await client.images.edit({ ...settings, image, prompt: "at night" }));
  for (const png of [made, edited]) assert.equal(png.subarray(1, 4).toString(), "PNG");
});

test("speech is made and transcribed", async () => {
  const speech = { model: "chat", voice: "alloy", input: "Hello there", response_format: "wav" };
  const spoken = Buffer.from(await (await client.audio.speech.create(speech)).arrayBuffer());
  assert.equal(spoken.subarray(0, 4).toString(), "RIFF");
  const file = await toFile(spoken, "hello.wav", { type: "audio/wav" });
  assert.ok((await client.audio.transcriptions.create({ model: "chat", file })).text);
});

test("failures are errors of the client's own classes", async () => {
  await assert.rejects(chat("nobody"), (error) => {
    assert.ok(error instanceof OpenAI.NotFoundError);
    assert.equal(error.code, "model_not_found");
    assert.ok(error.requestID);
    return true;
  });
  await assert.rejects(client.post("/chat/completions", { body: { messages } }), OpenAI.BadRequestError);
  await assert.rejects(chat("broken"), (error) => {
    assert.ok(error instanceof OpenAI.InternalServerError);
    assert.equal(error.code, "activation_failed");
    return true;
  });
});

test("a refusal with Retry-After is tried again until it is served", async () => {
  // Nobody may wait, not even for a cold start, which the first try begins all the same.
  await chat("unqueued", { max_tokens: 1 }, { maxRetries: 20 });
  const first = await chat("unqueued", { stream: true, max_tokens: 20 });
  const pieces = first[Symbol.asyncIterator]();
  await pieces.next();
  await assert.rejects(chat("unqueued", { max_tokens: 1 }), (error) => {
    assert.equal(error.code, "queue_full");
    assert.ok(Number(error.headers.get("retry-after")) > 0);
    return true;
  });
  const reading = (async () => {
    while (!(await pieces.next()).done);
  })();
  const answer = await chat("unqueued", { max_tokens: 1 }, { maxRetries: 20 });
  await reading;
  assert.ok(answer.choices[0].message.content);
});

test("aborting a stream gives its slot to the next", async () => {
  // Left alone it would go on for minutes, far past the patience of the next request.
  const endless = await chat("narrow", { stream: true, max_tokens: 20_000 });
  await endless[Symbol.asyncIterator]().next();
  endless.controller.abort();
  assert.ok((await chat("narrow", { max_tokens: 2 })).choices[0].message.content);
});

function picture(answer) {
  return Buffer.from(answer.data[0].b64_json, "base64");
}
