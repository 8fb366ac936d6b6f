// Sends one request after another for `http.mjs`, which sleeps meanwhile.

import { workerData } from "node:worker_threads";

const { done, port } = workerData;

async function answer({ url, body, headers }) {
  const begun = performance.now();
  const response = await fetch(url, { method: "POST", body, headers });
  const waiting = performance.now() - begun;
  const text = await response.text();
  const timings = { waiting, duration: performance.now() - begun };
  return { status: response.status, headers: [...response.headers], body: text, timings };
}

port.on("message", async (request) => {
  const failed = (error) => ({ status: 0, headers: [], body: "", timings: { waiting: 0, duration: 0 }, error: String(error) });
  port.postMessage(await answer(request).catch(failed));
  Atomics.store(done, 0, 1);
  Atomics.notify(done, 0);
});
