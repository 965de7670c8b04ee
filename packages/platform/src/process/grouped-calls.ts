/**
 * Calls that come about the same time, made as one. Calls during a group are the next group. No
 * timer: a lone call waits for the end of the event loop's turn and no longer.
 *
 * Why: a worker drains hundreds of lanes at a time, and a statement costs Postgres and us the same
 * for one lane as for fifty. The price: a call takes as long as its group.
 *
 * Used by `worker/src/lane/lane-store.ts` and, for wake-ups on Postgres, by `queue-wake-ups.ts`.
 */

export interface GroupedCallsOptions<Input, Output> {
  /** Answers a group, in its order. */
  readonly run: (inputs: readonly Input[]) => Promise<readonly Output[]>;
  readonly groupMax: number;
  /** Groups under way at the same time. */
  readonly flightsMax: number;
  /** True if one of the group may be to blame: then each is run by itself, so that it fails alone. */
  readonly isOnesFault: (error: unknown) => boolean;
}

interface Call<Input, Output> {
  readonly input: Input;
  readonly resolve: (output: Output) => void;
  readonly reject: (error: unknown) => void;
}

export class GroupedCalls<Input, Output> {
  readonly #options: GroupedCallsOptions<Input, Output>;
  #waiting: Call<Input, Output>[] = [];
  #flights = 0;
  #isScheduled = false;

  constructor(options: GroupedCallsOptions<Input, Output>) {
    this.#options = options;
  }

  /** @throws the error of `run` for the group of this call. */
  call(input: Input): Promise<Output> {
    return new Promise((resolve, reject) => {
      this.#waiting.push({ input, resolve, reject });
      this.#schedule();
    });
  }

  #schedule(): void {
    if (this.#isScheduled || this.#waiting.length === 0) return;
    if (this.#flights >= this.#options.flightsMax) return;
    this.#isScheduled = true;
    setImmediate(() => {
      this.#isScheduled = false;
      const group = this.#waiting.splice(0, this.#options.groupMax);
      this.#flights++;
      void this.#fly(group).finally(() => {
        this.#flights--;
        this.#schedule();
      });
      this.#schedule();
    });
  }

  async #fly(group: readonly Call<Input, Output>[]): Promise<void> {
    try {
      const outputs = await this.#options.run(group.map(({ input }) => input));
      for (const [place, call] of group.entries()) call.resolve(outputs[place] as Output);
    } catch (error) {
      if (group.length > 1 && this.#options.isOnesFault(error)) {
        for (const call of group) await this.#fly([call]);
        return;
      }
      for (const call of group) call.reject(error);
    }
  }
}
