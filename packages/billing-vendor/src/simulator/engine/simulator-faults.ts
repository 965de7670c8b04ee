/**
 * Faults on demand. Each has the requests that it meets, their number, the answer that the client sees, and whether the
 * request takes effect. `error` answers are kept under the idempotency key, as the payment provider keeps every answer
 * of a request that it began.
 */
export const FAULT_KINDS = [
  /** 409, without effect: another request holds the object. */
  'conflict',
  /** 429, without effect. */
  'rate_limit',
  /** 500, without effect, and the same 500 for the same key for ever. */
  'error',
  /** 500 although it was done, and the same 500 for the same key for ever. */
  'error_after',
  /** No answer, without effect. */
  'timeout',
  /** No answer although it was done. */
  'timeout_after',
  /** The connection is cut, without effect. */
  'reset',
  /** The connection is cut although it was done. */
  'reset_after',
  /** Done, and answered late; meanwhile the key is in use. */
  'slow',
] as const;
export type FaultKind = (typeof FAULT_KINDS)[number];

export interface Fault {
  readonly kind: FaultKind;
  readonly method?: string;
  /** Part of the path that it meets. Absent: any. */
  readonly path?: string;
  /** How many requests it meets. */
  count: number;
  /** Of `slow`. */
  readonly delayMs?: number;
  /** Of `slow`: answered when it resolves, instead of after a time. */
  readonly until?: Promise<unknown>;
  readonly onMet?: () => void;
}

/** Faults at random, for a whole run of tests. */
export interface Chaos {
  /** Of each changing request. */
  readonly probability: number;
  readonly kinds: readonly FaultKind[];
  /** Of `slow`. */
  readonly delayMs?: number;
}

export class FaultPlan {
  readonly #random: () => number;
  #faults: Fault[] = [];
  #chaos: Chaos | undefined;

  /** @param random - 0 ≤ x < 1; from a seed if a run must be repeatable. */
  constructor(random: () => number) {
    this.#random = random;
  }

  add(fault: Fault): void {
    this.#faults.push(fault);
  }

  /**
   * Resolves when a request meets it: with the effect, if the kind has one, and before any answer. No other request
   * meets it.
   */
  meet(fault: Omit<Fault, 'count'>): Promise<void> {
    return new Promise((resolve) => this.#faults.push({ ...fault, count: 1, onMet: resolve }));
  }

  setChaos(chaos: Chaos | undefined): void {
    this.#chaos = chaos;
  }

  clear(): void {
    this.#faults = [];
    this.#chaos = undefined;
  }

  /** The fault that this request meets; counted. */
  take(method: string, path: string): Pick<Fault, 'kind' | 'delayMs' | 'until'> | undefined {
    const fault = this.#faults.find(
      (each) =>
        each.count > 0 &&
        (each.method === undefined || each.method === method) &&
        (each.path === undefined || path.includes(each.path)),
    );
    if (fault) {
      fault.count -= 1;
      fault.onMet?.();
      return fault;
    }
    const chaos = this.#chaos;
    if (!chaos || method === 'GET' || this.#random() >= chaos.probability) return undefined;
    const kind = chaos.kinds[Math.floor(this.#random() * chaos.kinds.length)];
    return kind && { kind, delayMs: chaos.delayMs ?? 50 };
  }
}
