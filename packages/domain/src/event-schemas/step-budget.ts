/**
 * How much work a check may still do. Schemas and payloads are clients' and together decide what a check costs: an `anyOf`
 * of two in each of twenty definitions that refer to one another is a million ways. So the work is counted, by no clock, and a
 * check that would need more ends without a verdict.
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

  /** False from the step on that there is none left for. */
  take(stepCount = 1): boolean {
    this.#left -= stepCount;
    return this.#left >= 0;
  }

  /** Ends it: what is left to do would be too much, whatever is left of it. */
  end(): void {
    this.#left = -1;
  }
}
