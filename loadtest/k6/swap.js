// Two models of one GPU asked in turn by a lone user: each chat waits for a swap and is answered.
// FLEXINFER_URL, MODEL, OTHER_MODEL; TURNS (5).

import { check } from "k6";
import { Trend } from "k6/metrics";
import { MODEL, answered, chat } from "./gateway.js";

const OTHER = __ENV.OTHER_MODEL || "qwen";
const swap = new Trend("swap", true);

export const options = {
  scenarios: {
    turns: { executor: "per-vu-iterations", vus: 1, iterations: Number(__ENV.TURNS || 5), maxDuration: "10m" },
  },
  thresholds: { checks: ["rate==1"] },
};

export default function () {
  for (const model of [MODEL, OTHER]) {
    const response = chat(model);
    swap.add(response.timings.duration);
    check(response, { "the chat was answered": answered });
  }
}
