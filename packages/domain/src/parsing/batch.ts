/**
 * Batches of both APIs: the list, its number of items, the size of each, and one item after another.
 *
 * A bad item does not hurt its neighbours: it gives issues with its `batchIndex` and no operation.
 */
import { isJsonLargerThan } from '../values/json-size.ts';
import { isJsonObject, type JsonObject } from '../values/json.ts';
import type { CallDraft } from './parse.ts';
import type { Issue } from '../operations/issue.ts';
import type { Operation } from '../operations/operation.ts';

export interface BatchBounds {
  readonly countMax: number;
  readonly itemSizeBytesMax: number;
}

type ReadItem = (draft: CallDraft, item: JsonObject, body: JsonObject) => void;

/** The items of a large batch, which are read one by one: `intake/src/calls/batch-items.ts`. */
export interface BatchItems {
  readonly count: number;
  /**
   * The item, each once and in their order; undefined if it is larger than `sizeBytesMax`. Faults of it are in the
   * draft's context from then on.
   */
  read(index: number, sizeBytesMax: number): { readonly value: unknown } | undefined;
}

/** Reads every item of `body.batch` with `readItem`. */
export function readBatch(
  draft: CallDraft,
  body: unknown,
  bounds: BatchBounds,
  readItem: ReadItem,
): void {
  const batch = readList(draft, body, bounds.countMax);
  if (batch === undefined) return;
  // If the whole body is no larger than one item may be, no item is too large.
  const measuresItems =
    (draft.context.bodySizeBytes ?? Number.POSITIVE_INFINITY) > bounds.itemSizeBytesMax;
  for (let index = 0; index < batch.length; index++) {
    draft.beginItem(index);
    if (draft.isRefused) continue;
    const item: unknown = batch[index];
    if (measuresItems && isJsonLargerThan(item, bounds.itemSizeBytesMax))
      refuseLargeItem(draft, index, bounds);
    else takeItem(draft, index, item, body as JsonObject, readItem);
  }
}

/** Gives the operations of one item after another, then the issues of all. */
export type BatchSteps = Generator<readonly Operation[], readonly Issue[], void>;

/**
 * As `readBatch`, an item a step, for a caller who has other work between two of them.
 *
 * @param body - with an empty `batch`.
 */
export function* readBatchInSteps(
  draft: CallDraft,
  body: unknown,
  items: BatchItems,
  bounds: BatchBounds,
  readItem: ReadItem,
): BatchSteps {
  if (readList(draft, body, bounds.countMax, items.count) !== undefined) {
    for (let index = 0; index < items.count; index++) {
      const item = items.read(index, bounds.itemSizeBytesMax);
      draft.beginItem(index);
      if (item === undefined) refuseLargeItem(draft, index, bounds);
      else if (!draft.isRefused) takeItem(draft, index, item.value, body as JsonObject, readItem);
      yield draft.operations.splice(0);
    }
  }
  return draft.finish().issues;
}

function takeItem(
  draft: CallDraft,
  index: number,
  item: unknown,
  body: JsonObject,
  readItem: ReadItem,
): void {
  if (isJsonObject(item)) readItem(draft, item, body);
  else draft.refuse('invalid', null, `item ${index} of batch must be an object`, item);
}

const refuseLargeItem = (draft: CallDraft, index: number, bounds: BatchBounds): void =>
  draft.refuse(
    'too_large',
    null,
    `item ${index} of batch is larger than ${bounds.itemSizeBytesMax / 1_024} KB`,
  );

/** @param itemCount - given if the items are not in the list. */
function readList(
  draft: CallDraft,
  body: unknown,
  countMax: number,
  itemCount?: number,
): unknown[] | undefined {
  if (!isJsonObject(body)) {
    draft.refuse('invalid', null, 'the body must be a JSON object', body);
    return undefined;
  }
  const { batch } = body;
  const count = itemCount ?? (Array.isArray(batch) ? batch.length : 0);
  if (batch === undefined || batch === null) {
    draft.refuse('required', 'batch', 'batch is required');
  } else if (!Array.isArray(batch)) {
    draft.refuse('invalid', 'batch', 'batch must be an array', batch);
  } else if (count === 0) {
    draft.refuse('required', 'batch', 'batch must hold at least one item');
  } else if (count > countMax) {
    draft.refuse(
      'too_large',
      'batch',
      `batch holds ${count} items; the bound is ${countMax}`,
      undefined,
      { callCount: count },
    );
  } else {
    return batch;
  }
  return undefined;
}
