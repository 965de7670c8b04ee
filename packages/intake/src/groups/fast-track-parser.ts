/**
 * Simple track calls of Pipelines → their operations, packed as JSON.
 *
 * The JSON is the one that the broker gets (`domain/src/operations/packed-event.ts`), without a value in between.
 * `assembly/fast-track.ts` parses, and documents the calls that it declines; this file calls it.
 *
 * Its memory has a fixed size, 3.4 MB a process, and holds one body and its operations at a time.
 *
 * Before: `fast-path.ts`. After: `commit-group.ts`, which copies the operations.
 */
import { readFileSync } from 'node:fs';
import { PIPELINES_STRICT_BATCH_SIZE_BYTES_MAX } from '@sluice/domain/operations/limits';
import { PACKED_EVENT_FORMAT } from '@sluice/domain/operations/packed-event';
import { SEMANTIC_EVENT_NAMES } from '@sluice/domain/pipelines/semantic-events';
import { createIdGenerator } from '@sluice/platform/process/new-id';

/** Operations that are JSON already. They must be read before the next call is parsed. */
export interface ParsedOperations {
  readonly count: number;
  /** Unix milliseconds, the same for all. */
  readonly receivedAtMs: number;
  /** The memory that holds them, as UTF-8. */
  readonly memory: Buffer;
  /** The hash of the key of its person (`domain/src/operations/shard.ts`). */
  keyHashOf(index: number): number;
  /** The hash of the key of its anonymous id; without one the same as the person's. */
  anonymousHashOf(index: number): number;
  /** The hash of the event id that the client gave (`groups/repeated-event-ids.ts`); 0 without one. */
  eventIdHashOf(index: number): number;
  /** Into `memory`; the end is behind the last byte. */
  startOf(index: number): number;
  endOf(index: number): number;
}

/** Exports of `assembly/fast-track.ts`: addresses, and functions that return the number of operations. */
interface Exports {
  readonly memory: { readonly buffer: ArrayBuffer };
  readonly input: { readonly value: number };
  readonly results: { readonly value: number };
  readonly nextId: { readonly value: number };
  readonly table: { readonly value: number };
  readonly parseCall: ParseInMemory;
  readonly parseBatch: ParseInMemory;
}
type ParseInMemory = (sizeBytes: number, environmentId: number, receivedAtMs: number) => number;

/** In the order in which the other side numbers them. */
const ROWS: readonly string[] = [
  ...['userId', 'anonymousId', 'event', 'timestamp', 'messageId', 'type', 'properties'],
  ...['originalTimestamp', 'sentAt', 'batch', 'track'],
  // The pieces of a `PackedEvent` between its values.
  `[${PACKED_EVENT_FORMAT},`,
  ',',
  ',"id","',
  ',"email","',
  ',"anonymous_id","',
  '","',
  '","',
  '",null,"',
  '","',
  '",',
  '{}',
  ',',
  ',"pipelines.track"]',
  ',"pipelines.batch"]',
  ...SEMANTIC_EVENT_NAMES,
];
const ROW_COUNT_MAX = 47;
const ROW_SIZE_BYTES = 256;
const RESULT_INTEGER_COUNT = 5;
/** As much as its memory holds; larger batches are rare. */
const BODY_SIZE_BYTES_MAX = PIPELINES_STRICT_BATCH_SIZE_BYTES_MAX;

/** Neither `es2024` nor Node's types know it, and `dom` would bring a browser's globals. */
declare const WebAssembly: {
  readonly Module: new (bytes: Uint8Array) => object;
  readonly Instance: new (module: object, imports: object) => { readonly exports: unknown };
};

const compiled = new WebAssembly.Module(
  readFileSync(new URL('../../assembly/fast-track.wasm', import.meta.url)),
);

export class FastTrackParser implements ParsedOperations {
  count = 0;
  receivedAtMs = 0;
  readonly memory: Buffer;
  readonly #exports: Exports;
  readonly #inputAt: number;
  readonly #results: Uint32Array;
  /** The time of the next id, Unix milliseconds. */
  #idAtMs = -Infinity;
  /**
   * Asked once a millisecond; the WebAssembly counts on from there, since writing a text into its memory costs a
   * third of the call. It uses the time of the call, not the clock: a clock that is a millisecond ahead would
   * continue from an id that the WebAssembly has counted past.
   */
  readonly #newId = createIdGenerator(() => this.#idAtMs);

  /** @param module - compiled from the same source. Absent: the one beside it. */
  constructor(module: object = compiled) {
    const instance = new WebAssembly.Instance(module, {});
    this.#exports = instance.exports as Exports;
    const { memory, input, results } = this.#exports;
    this.memory = Buffer.from(memory.buffer);
    this.#inputAt = input.value;
    this.#results = new Uint32Array(memory.buffer, results.value);
    this.#writeTable();
  }

  /**
   * Parses the body of a track call, or of a batch of them.
   *
   * @returns undefined if it is declined, which is no sign of a fault.
   */
  parse(
    bytes: Uint8Array,
    isBatch: boolean,
    environmentId: number,
    receivedAtMs: number,
  ): ParsedOperations | undefined {
    const sizeBytes = bytes.length;
    if (sizeBytes > BODY_SIZE_BYTES_MAX) return undefined;
    this.memory.set(bytes, this.#inputAt);
    // When the clock goes back the ids do not, or they might come twice.
    if (receivedAtMs > this.#idAtMs) {
      this.#idAtMs = receivedAtMs;
      this.memory.write(this.#newId(), this.#exports.nextId.value, 'latin1');
    }
    this.receivedAtMs = receivedAtMs;
    this.count = isBatch
      ? this.#exports.parseBatch(sizeBytes, environmentId, receivedAtMs)
      : this.#exports.parseCall(sizeBytes, environmentId, receivedAtMs);
    return this.count === 0 ? undefined : this;
  }

  keyHashOf(index: number): number {
    return this.#results[index * RESULT_INTEGER_COUNT] as number;
  }

  anonymousHashOf(index: number): number {
    return this.#results[index * RESULT_INTEGER_COUNT + 1] as number;
  }

  eventIdHashOf(index: number): number {
    return this.#results[index * RESULT_INTEGER_COUNT + 4] as number;
  }

  startOf(index: number): number {
    return this.#results[index * RESULT_INTEGER_COUNT + 2] as number;
  }

  endOf(index: number): number {
    return this.#results[index * RESULT_INTEGER_COUNT + 3] as number;
  }

  #writeTable(): void {
    if (ROWS.length > ROW_COUNT_MAX) throw new RangeError('the table of fast-track.ts is full');
    for (const [row, text] of ROWS.entries()) {
      const at = this.#exports.table.value + row * ROW_SIZE_BYTES;
      this.memory.writeInt32LE(this.memory.write(text, at + 4, 'latin1'), at);
    }
  }
}
