// Many answers by events at once. k6 reads each to its end; the time to the first byte is `waiting`.
// FLEXINFER_URL, MODEL; STREAMS at once (100), each of TOKENS (64), for DURATION (30s).

import { check } from "k6";
import { Trend } from "k6/metrics";
import { MODEL, chat } from "./gateway.js";

const firstByte = new Trend("first_byte", true);

export const options = {
  scenarios: {
    streams: {
      executor: "constant-vus",
      vus: Number(__ENV.STREAMS || 100),
      duration: __ENV.DURATION || "30s",
    },
  },
  thresholds: { checks: ["rate==1"] },
};

export function setup() {
  chat(MODEL);
}

export default function () {
  const response = chat(MODEL, { stream: true, max_tokens: Number(__ENV.TOKENS || 64) });
  firstByte.add(response.timings.waiting);
  check(response, {
    "it is a stream of events": (answer) => answer.headers["Content-Type"].startsWith("text/event-stream"),
    "it came to its end": (answer) => answer.body.trimEnd().endsWith("data: [DONE]"),
  });
}
