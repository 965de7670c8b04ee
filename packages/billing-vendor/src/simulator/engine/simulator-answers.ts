/**
 * The payment provider's idempotency store: the first answer of a key, with its request, for 24 hours. The same
 * key with another request is refused, one whose request is still running too.
 */
import { ProviderRefusal } from './simulator-request.ts';
import type { SimulatorState } from './simulator-state.ts';

const KEPT_MS = 24 * 3_600_000;

export interface Answer {
  readonly status: number;
  readonly body: Record<string, unknown>;
}

export class AnswerStore {
  readonly #state: SimulatorState;
  readonly #running = new Map<string, string>();

  constructor(state: SimulatorState) {
    this.#state = state;
  }

  /**
   * The kept answer; undefined if the request must be carried out. The caller then calls `finish`.
   *
   * @throws ProviderRefusal 400 for the key of another request, 409 for one that is running.
   */
  begin(key: string, request: string): Answer | undefined {
    const kept = this.#state.get('answer', key);
    if (kept && Number(kept['at_ms']) + KEPT_MS <= this.#state.now()) {
      this.#state.delete('answer', key);
      return this.begin(key, request);
    }
    const before = this.#running.get(key) ?? kept?.['request'];
    if (before !== undefined && before !== request)
      throw new ProviderRefusal(
        400,
        'idempotency_error',
        'Keys for idempotent requests can only be used with the same parameters they were first used with.',
      );
    if (this.#running.has(key))
      throw new ProviderRefusal(
        409,
        'idempotency_error',
        'There is currently another in-progress request using this idempotency key.',
        { code: 'idempotency_key_in_use' },
      );
    if (kept) return kept['answer'] as Answer;
    this.#running.set(key, request);
    return undefined;
  }

  /** @param answer - absent if the request was not begun, so that its key keeps no answer. */
  finish(key: string, request: string, answer: Answer | undefined): void {
    this.#running.delete(key);
    if (answer) this.#state.save('answer', { id: key, request, answer, at_ms: this.#state.now() });
  }
}
