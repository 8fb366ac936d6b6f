// The part of the module `k6/metrics` that our scenarios use.

export class Trend {
  values = [];

  constructor(name, isTime) {
    this.name = name;
    this.isTime = isTime;
  }

  add(value) {
    if (!Number.isFinite(value)) throw new TypeError(`${this.name} was given ${value}`);
    this.values.push(value);
  }
}
