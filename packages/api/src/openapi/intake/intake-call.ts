/** A call of intake in the description. `pipelines-calls.ts` and `track-calls.ts` list them. */

export interface IntakeCall {
  readonly method: 'get' | 'post' | 'put' | 'delete';
  readonly path: string;
  readonly operationId: string;
  readonly summary: string;
  readonly description: string;
  /** Name of its schema. Absent: it needs no body. */
  readonly body?: string;
  readonly example?: unknown;
  /** `results`: one for each item. */
  readonly answer?: 204 | 207 | 'results';
  readonly isOpen?: true;
  readonly query?: readonly object[];
}

export const kilobytes = (bytes: number): string =>
  bytes >= 1_048_576 ? `${bytes / 1_048_576} MB` : `${bytes / 1_024} KB`;
