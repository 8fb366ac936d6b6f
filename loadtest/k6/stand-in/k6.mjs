// The part of the module `k6` that our scenarios use.

/** Every check made so far. */
export const checks = [];

export function check(value, conditions) {
  const results = Object.entries(conditions).map(([name, holds]) => ({ name, holds: Boolean(holds(value)) }));
  checks.push(...results);
  return results.every((result) => result.holds);
}
