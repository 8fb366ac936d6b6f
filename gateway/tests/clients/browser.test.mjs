// A page in a real browser, of another origin than the gateway's: what it may read, streams and sockets.
// Run by `cargo xtask test`, which starts the gateway with keys and `--cors-origins http://localhost:*`.

import assert from "node:assert/strict";
import { createServer } from "node:http";
import { createRequire } from "node:module";
import { join } from "node:path";
import { after, before, test } from "node:test";

// The driver lies outside the checkout, where an import would not look.
const require = createRequire(join(process.env.FLEXINFER_NODE_MODULES, "from-here.js"));
const { chromium } = require("playwright-core");

const gateway = process.env.FLEXINFER_URL;
const key = process.env.FLEXINFER_TEST_KEY;
const bodyOf = (more) => JSON.stringify({
  model: "chat",
  messages: [{ role: "user", content: "Say something" }],
  max_tokens: 8,
  ...more,
});

let browser;
let server;
let port;

before(async () => {
  server = createServer((_, answer) => {
    answer.setHeader("content-type", "text/html");
    answer.end("<!doctype html><title>a page</title>");
  });
  await new Promise((listening) => server.listen(0, "127.0.0.1", listening));
  port = server.address().port;
  browser = await chromium.launch({
    executablePath: process.env.FLEXINFER_BROWSER,
    // Root, as in a container, has no sandbox.
    args: process.getuid() === 0 ? ["--no-sandbox"] : [],
  });
});

after(async () => {
  await browser?.close();
  server?.close();
});

/// A page of an origin that may read answers, and one of an origin that may not.
async function page(host = "localhost") {
  const opened = await browser.newPage();
  await opened.goto(`http://${host}:${port}/`);
  return opened;
}

const call = ([url, headers, body]) =>
  fetch(url, { method: "POST", headers: { "content-type": "application/json", ...headers }, body })
    .then(async (answer) => ({
      status: answer.status,
      body: await answer.text(),
      id: answer.headers.get("x-request-id"),
      code: answer.headers.get("x-flexinfer-error-code"),
    }))
    .catch((error) => ({ failed: String(error) }));

test("a page asks for a chat after its browser has asked whether it may", async () => {
  const opened = await page();
  const preflights = [];
  opened.on("requestfinished", (request) => preflights.push(request.method()));
  const answer = await opened.evaluate(call, [
    `${gateway}/v1/chat/completions`,
    { authorization: `Bearer ${key}`, "x-stainless-lang": "js" },
    bodyOf(),
  ]);
  assert.equal(answer.status, 200, JSON.stringify(answer));
  assert.ok(JSON.parse(answer.body).choices[0].message.content);
  assert.ok(answer.id, "the page may read the request's id");
});

test("a refusal can be read too, with its code", async () => {
  const answer = await (await page()).evaluate(call, [
    `${gateway}/v1/chat/completions`,
    { authorization: "Bearer nobody's" },
    bodyOf(),
  ]);
  assert.deepEqual([answer.status, answer.code], [401, "invalid_api_key"]);
});

test("a page of an origin that is not named reads nothing", async () => {
  const answer = await (await page("127.0.0.1")).evaluate(call, [
    `${gateway}/v1/chat/completions`,
    { authorization: `Bearer ${key}` },
    bodyOf(),
  ]);
  assert.match(answer.failed ?? "", /Failed to fetch/);
});

/// Reads pieces of a stream in the page: `most` of them, after which it leaves, or all.
const stream = async ([url, headers, body, most]) => {
  const answer = await fetch(url, { method: "POST", headers, body });
  const reader = answer.body.pipeThrough(new TextDecoderStream()).getReader();
  const pieces = [];
  while (pieces.length < most) {
    const { done, value } = await reader.read();
    if (done) return pieces;
    pieces.push(value);
  }
  await reader.cancel();
  return pieces;
};

test("a stream is read while it goes on, to its end or until the page leaves", async () => {
  const url = `${gateway}/v1/chat/completions`;
  const headers = { "content-type": "application/json", authorization: `Bearer ${key}` };
  const opened = await page();
  // Left alone it would go on for longer than the test has patience.
  const endless = bodyOf({ stream: true, max_tokens: 200_000, ignore_eos: true });
  assert.equal((await opened.evaluate(stream, [url, headers, endless, 2])).length, 2);
  const whole = await opened.evaluate(stream, [url, headers, bodyOf({ stream: true }), 1000]);
  assert.ok(whole.join("").trimEnd().endsWith("data: [DONE]"));
});

/// Opens a socket in the page, says what is to be said, and returns the types of events up to `last`.
const talk = ([url, protocols, said, last]) =>
  new Promise((resolve) => {
    const socket = new WebSocket(url, protocols);
    const types = [];
    const end = (how) => resolve({ how, protocol: socket.protocol, types });
    socket.onopen = () => said.forEach((event) => socket.send(JSON.stringify(event)));
    socket.onmessage = ({ data }) => {
      types.push(JSON.parse(data).type);
      if (types.at(-1) === last) {
        end("heard");
        socket.close();
      }
    };
    socket.onerror = () => end("refused");
  });

test("a socket carries its key as a subprotocol, since a page can send no header with it", async () => {
  const url = `${gateway.replace("http", "ws")}/v1/realtime?model=chat`;
  const content = [{ type: "input_text", text: "Hello" }];
  const said = [
    { type: "conversation.item.create", item: { type: "message", role: "user", content } },
    { type: "response.create", response: { max_output_tokens: 4 } },
  ];
  const opened = await page();
  const heard = await opened.evaluate(talk, [
    url,
    ["realtime", `openai-insecure-api-key.${key}`],
    said,
    "response.done",
  ]);
  assert.deepEqual([heard.how, heard.protocol], ["heard", "realtime"]);
  assert.equal(heard.types.filter((type) => type === "response.output_text.delta").length, 4);
  const refused = await opened.evaluate(talk, [url, ["realtime"], [], "session.created"]);
  assert.equal(refused.how, "refused", "without a key");
});
