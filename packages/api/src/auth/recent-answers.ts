/**
 * Answers kept for a moment. A question asked a thousand times a second reaches Postgres once.
 *
 * Invariant: no answer is older than `ttlMs`, counted from when its question was *asked*, since it does not know of
 * later changes. Simultaneous askers share one question. Failures and empty answers are not kept.
 */

export interface RecentAnswersOptions {
  readonly ttlMs: number;
  /** Past it everything is forgotten at once: cheaper than choosing, and it costs one question a key. */
  readonly countMax: number;
  /** Milliseconds that never go back: a clock that is set back would keep a revoked key for as long. */
  readonly monotonicNow: () => number;
}

export class RecentAnswers<Answer> {
  readonly #options: RecentAnswersOptions;
  readonly #answers = new Map<string, { askedAtMs: number; answer: Promise<Answer | undefined> }>();

  constructor(options: RecentAnswersOptions) {
    this.#options = options;
  }

  /** The recent answer for `key`, else the one that `ask` resolves to. */
  async get(key: string, ask: () => Promise<Answer | undefined>): Promise<Answer | undefined> {
    const askedAtMs = this.#options.monotonicNow();
    const recent = this.#answers.get(key);
    if (recent && askedAtMs - recent.askedAtMs < this.#options.ttlMs) return recent.answer;

    if (this.#answers.size >= this.#options.countMax) this.#answers.clear();
    const entry = { askedAtMs, answer: ask() };
    this.#answers.set(key, entry);
    let isKept = false;
    try {
      const answer = await entry.answer;
      isKept = answer !== undefined;
      return answer;
    } finally {
      if (!isKept && this.#answers.get(key) === entry) this.#answers.delete(key);
    }
  }
}
