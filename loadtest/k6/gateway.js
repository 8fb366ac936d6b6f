// What all scenarios share: where the gateway is, and a chat.

import http from "k6/http";

export const URL = __ENV.FLEXINFER_URL || "http://127.0.0.1:8080";
export const MODEL = __ENV.MODEL || "llama";
const KEY = __ENV.API_KEY ? { Authorization: `Bearer ${__ENV.API_KEY}` } : {};

/** One chat with a model; `more` is put into the body beside it. */
export function chat(model, more = {}) {
  const messages = [{ role: "user", content: "Name a fruit and say why." }];
  const body = JSON.stringify({ model, messages, max_tokens: 16, ...more });
  const headers = { "Content-Type": "application/json", ...KEY };
  // Above any cold start: a wait is what some scenarios are about.
  return http.post(`${URL}/v1/chat/completions`, body, { headers, timeout: "120s" });
}

/** Whether an answer is a whole chat. */
export function answered(response) {
  return response.status === 200 && response.json("choices.0.message.content") !== undefined;
}
