/**
 * A large batch, whose items are read and parsed in turns.
 *
 * They are read one by one, so no body takes the event loop for longer than an item does, which is 64 KB at most.
 *
 * Before: `exchange.ts`, whose turn it is. After: `accept.ts`, which parses the items.
 */
import { isUtf8 } from 'node:buffer';
import type { BatchItems } from '@sluice/domain/parsing/batch';
import type { JsonFault } from '@sluice/domain/parsing/lenient-json';
import { readBody, readItem, type Body, type NextTurn } from './read-body.ts';
import { NO_LOOK, type KeyLook } from './repeated-key.ts';
import { BatchSplitter } from './split-batch.ts';

/** Between two looks at the clock: some 0.1 ms. */
const STEP_SIZE_BYTES = 64 * 1_024;
/** Size of a batch without its items: as much as one call may have. */
const ENVELOPE_SIZE_BYTES_MAX = 64 * 1_024;

/** The body, with its `items` and an empty `batch`. Undefined: the sender is gone. */
export async function readBatchInTurns(
  bytes: Uint8Array,
  firstTurn: { isOver(): boolean },
  nextTurn: NextTurn,
  mayRepeatKey: KeyLook = NO_LOOK,
): Promise<Body | undefined> {
  const splitter = new BatchSplitter(bytes);
  let turn: { isOver(): boolean } | undefined = firstTurn;
  while (!splitter.advance(STEP_SIZE_BYTES)) {
    if (turn.isOver()) turn = await nextTurn();
    if (turn === undefined) return undefined;
  }
  return bodyOf(splitter, bytes, nextTurn, mayRepeatKey);
}

function bodyOf(
  splitter: BatchSplitter,
  bytes: Uint8Array,
  nextTurn: NextTurn,
  mayRepeatKey: KeyLook,
): Body {
  const { itemCount } = splitter;
  const sizeBytes = bytes.length;
  // The parser reports the expected type.
  if (splitter.isNoObject) return { outcome: 'read', value: [], sizeBytes, hasEscapes: false };
  if (!splitter.isWhole) {
    const { brokenAt } = splitter;
    const fault = brokenAt === undefined ? 'it ends too early' : `a fault at position ${brokenAt}`;
    return { outcome: 'invalid-json', message: `the body is not valid JSON: ${fault}` };
  }
  if (splitter.envelopeSizeBytes > ENVELOPE_SIZE_BYTES_MAX)
    return { outcome: 'too-large', callCount: itemCount, besideItemsMax: ENVELOPE_SIZE_BYTES_MAX };
  const body = readBody(splitter.envelope(), 'batch', mayRepeatKey);
  if (body.outcome !== 'read')
    return {
      outcome: 'invalid-json',
      message: 'the body is not valid JSON: a fault beside its items',
    };
  const faults = new Map(body.faults);
  return {
    ...body,
    sizeBytes,
    hasEscapes: splitter.hasEscapes || !isUtf8(bytes),
    faults,
    inTurns: { items: new SplitItems(bytes, splitter, faults, mayRepeatKey), nextTurn },
  };
}

class SplitItems implements BatchItems {
  readonly count: number;
  readonly #bytes: Uint8Array;
  readonly #splitter: BatchSplitter;
  readonly #faults: Map<number | null, readonly JsonFault[]>;
  readonly #mayRepeatKey: KeyLook;

  constructor(
    bytes: Uint8Array,
    splitter: BatchSplitter,
    faults: Map<number | null, readonly JsonFault[]>,
    mayRepeatKey: KeyLook,
  ) {
    this.count = splitter.itemCount;
    this.#bytes = bytes;
    this.#splitter = splitter;
    this.#faults = faults;
    this.#mayRepeatKey = mayRepeatKey;
  }

  read(index: number, sizeBytesMax: number): { readonly value: unknown } | undefined {
    const place = this.#splitter.placeOf(index);
    if (place === undefined) throw new RangeError(`item ${index} was not kept`);
    const { start, end, sizeBytesMin } = place;
    // A look at its size is cheap; an item of 4 MB would take 0.2 s to be read.
    if (sizeBytesMin > sizeBytesMax) return undefined;
    const { value, faults } = readItem(this.#bytes.subarray(start, end), start, this.#mayRepeatKey);
    if (faults.length > 0) this.#faults.set(index, faults);
    return { value };
  }
}
