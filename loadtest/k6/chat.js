// Whole answers at a steady arrival rate: arrivals do not wait for answers, so a slow gateway shows.
// FLEXINFER_URL, MODEL; RATE chats a second (20) for DURATION (30s).

import { check } from "k6";
import { MODEL, answered, chat } from "./gateway.js";

export const options = {
  scenarios: {
    chats: {
      executor: "constant-arrival-rate",
      rate: Number(__ENV.RATE || 20),
      timeUnit: "1s",
      duration: __ENV.DURATION || "30s",
      preAllocatedVUs: 50,
      maxVUs: 500,
    },
  },
  thresholds: { checks: ["rate==1"] },
};

export function setup() {
  chat(MODEL);
}

export default function () {
  check(chat(MODEL), { "the chat was answered": answered });
}
