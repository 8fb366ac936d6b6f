// A crowd that meets a sleeping model: it is woken once, and every one of them is answered.
// FLEXINFER_URL, MODEL (one that sleeps); CROWD (100: the bound of the queue unless it is raised).

import { check } from "k6";
import { MODEL, answered, chat } from "./gateway.js";

export const options = {
  scenarios: {
    crowd: { executor: "per-vu-iterations", vus: Number(__ENV.CROWD || 100), iterations: 1, maxDuration: "2m" },
  },
  thresholds: { checks: ["rate==1"] },
};

export default function () {
  check(chat(MODEL), { "the chat was answered": answered });
}
