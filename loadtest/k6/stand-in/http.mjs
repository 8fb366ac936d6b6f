// The part of the module `k6/http` that our scenarios use. k6's calls wait for their answer; here a worker
// sends the request while this thread sleeps on a shared number.

import { MessageChannel, Worker, receiveMessageOnPort } from "node:worker_threads";

const done = new Int32Array(new SharedArrayBuffer(4));
const { port1: here, port2: there } = new MessageChannel();
const worker = new Worker(new URL("./http-worker.mjs", import.meta.url), {
  workerData: { done, port: there },
  transferList: [there],
});
// Neither keeps the program alive.
worker.unref();
here.unref();

function post(url, body, { headers = {}, timeout = "60s" } = {}) {
  Atomics.store(done, 0, 0);
  here.postMessage({ url, body, headers });
  const seconds = Number(/^(\d+)s$/.exec(timeout)[1]);
  if (Atomics.wait(done, 0, 0, seconds * 1000) === "timed-out") throw new Error(`${url}: no answer in ${timeout}`);
  return new Answer(receiveMessageOnPort(here).message);
}

/** k6's answer: 0 for one that did not come, header names as k6 spells them. */
class Answer {
  constructor({ status, headers, body, timings, error }) {
    Object.assign(this, { status, body, timings, error });
    const spelled = ([name, value]) => [name.replace(/(^|-)[a-z]/g, (letters) => letters.toUpperCase()), value];
    this.headers = Object.fromEntries(headers.map(spelled));
  }

  /** The body as JSON, or the value at a path such as `choices.0.text`. */
  json(path = "") {
    const steps = path.split(".").filter(Boolean);
    return steps.reduce((value, step) => value?.[step], JSON.parse(this.body));
  }
}

export default { post };
