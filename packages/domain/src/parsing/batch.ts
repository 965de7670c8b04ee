/**
 * Batches of both APIs: the list, its number of items, the size of each, and one item after another.
 *
 * A bad item does not hurt its neighbours: it gives issues with its `batchIndex` and no operation.
 */
import { isJsonLargerThan } from '../values/json-size.ts';
import { isJsonObject, type JsonObject } from '../values/json.ts';
import type { CallDraft } from './parse.ts';

export interface BatchBounds {
  readonly countMax: number;
  readonly itemSizeBytesMax: number;
}

/** Reads every item of `body.batch` with `readItem`. */
export function readBatch(
  draft: CallDraft,
  body: unknown,
  bounds: BatchBounds,
  readItem: (draft: CallDraft, item: JsonObject, body: JsonObject) => void,
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
    if (!isJsonObject(item)) {
      draft.refuse('invalid', null, `item ${index} of batch must be an object`, item);
    } else if (measuresItems && isJsonLargerThan(item, bounds.itemSizeBytesMax)) {
      draft.refuse(
        'too_large',
        null,
        `item ${index} of batch is larger than ${bounds.itemSizeBytesMax / 1_024} KB`,
      );
    } else {
      readItem(draft, item, body as JsonObject);
    }
  }
}

function readList(draft: CallDraft, body: unknown, countMax: number): unknown[] | undefined {
  if (!isJsonObject(body)) {
    draft.refuse('invalid', null, 'the body must be a JSON object', body);
    return undefined;
  }
  const { batch } = body;
  if (batch === undefined || batch === null) {
    draft.refuse('required', 'batch', 'batch is required');
  } else if (!Array.isArray(batch)) {
    draft.refuse('invalid', 'batch', 'batch must be an array', batch);
  } else if (batch.length === 0) {
    draft.refuse('required', 'batch', 'batch must hold at least one item');
  } else if (batch.length > countMax) {
    draft.refuse(
      'too_large',
      'batch',
      `batch holds ${batch.length} items; the bound is ${countMax}`,
      undefined,
      batch.length,
    );
  } else {
    return batch;
  }
  return undefined;
}
