/** A call of the API as a value. A hook or a button sends it. */
import type { Method } from './operations.ts';

export interface SendOptions {
  /** Absent for calls that are about no workspace. */
  readonly workspaceId?: number | undefined;
  /** A write that is sent twice under one key is made once. */
  readonly idempotencyKey?: string;
  readonly signal?: AbortSignal;
}

export interface Call<Data> {
  readonly method: Method;
  /** Equal for equal calls. */
  readonly key: string;
  /** @throws RequestFailed if the API refuses or does not answer. */
  readonly send: (options: SendOptions) => Promise<Data>;
}
