// Runs every scenario a few times under the stand-in for k6 in `stand-in/`, against a gateway that
// `cargo xtask test` starts over gateway/tests/clients/models: the scenarios must work, not be fast.

import assert from "node:assert/strict";
import { register } from "node:module";
import { test } from "node:test";
import { checks } from "./stand-in/k6.mjs";

register("./stand-in/resolve.mjs", import.meta.url);

// What k6 gives its scripts as globals.
globalThis.__ENV = { ...process.env, MODEL: "chat", STREAMS: "2", TOKENS: "8" };

const scenario = async (file, environment = {}) => {
  Object.assign(globalThis.__ENV, environment);
  // Scripts read the environment when they are loaded; a query makes each load its own.
  return import(`./${file}?${new URLSearchParams(environment)}`);
};

for (const [file, environment] of [
  ["chat.js", {}],
  ["stream.js", {}],
  ["cold.js", { MODEL: "asleep" }],
  ["swap.js", { MODEL: "left", OTHER_MODEL: "right" }],
]) {
  test(`${file} runs and its checks hold`, async () => {
    const script = await scenario(file, environment);
    const names = Object.keys(script.options.scenarios);
    assert.equal(names.length, 1, "one scenario a file");
    assert.deepEqual(script.options.thresholds, { checks: ["rate==1"] });
    checks.length = 0;
    const given = script.setup?.();
    for (let turn = 0; turn < 2; turn += 1) script.default(given);
    assert.ok(checks.length >= 2, "it checks something");
    for (const { name, holds } of checks) assert.ok(holds, name);
  });
}
