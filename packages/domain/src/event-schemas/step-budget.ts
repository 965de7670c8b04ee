/**
 * Work that a check may still do, as a count of steps.
 *
 * Schemas and payloads are clients', and together they decide the cost of a check: an `anyOf` of two in each of twenty
 * definitions that refer to one another is a million ways. So the work is counted, without a clock. A check that would
 * need more ends without a verdict.
 */
export class StepBudget {
  #left: number;

  constructor(stepCountMax: number) {
    this.#left = stepCountMax;
  }

  get left(): number {
    return Math.max(0, this.#left);
  }

  get isSpent(): boolean {
    return this.#left < 0;
  }

  /** False from the first step beyond the budget on. */
  take(stepCount = 1): boolean {
    this.#left -= stepCount;
    return this.#left >= 0;
  }

  /** Ends it: the remaining work would be too much for any budget. */
  end(): void {
    this.#left = -1;
  }
}
