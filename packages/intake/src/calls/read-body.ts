/**
 * Body bytes → JSON value (step 1). A text that is only nearly JSON is read as far as possible, with its faults.
 *
 * Before: `exchange.ts` has collected the bytes, `inflate-body.ts` has inflated a compressed one. After: `accept.ts`.
 */
import type { BatchItems } from '@sluice/domain/parsing/batch';
import {
  findRepeatedKeys,
  readLenientItem,
  readLenientJson,
  WRONG_BYTE,
  type ItemsKey,
  type JsonFault,
  type JsonFaults,
} from '@sluice/domain/parsing/lenient-json';
import { isJsonObject } from '@sluice/domain/values/json';
import type { Call } from './calls.ts';
import { NO_LOOK, type KeyLook } from './repeated-key.ts';

export type Body =
  | {
      readonly outcome: 'read';
      readonly value: unknown;
      readonly sizeBytes: number;
      readonly hasEscapes: boolean;
      /** Set if it is only nearly JSON (`domain/src/parsing/lenient-json.ts`). */
      readonly faults?: JsonFaults;
      /** Set if its `batch` is empty, and its items are read one by one (`batch-items.ts`). */
      readonly inTurns?: ItemsInTurns;
    }
  /**
   * `callCount` is the number of calls in it, if they were counted. `besideItemsMax` is set if the part beside its
   * items is too large, to the bound in bytes. `valueCountMax` is set if it has too many values, to the bound.
   */
  | {
      readonly outcome: 'too-large';
      readonly callCount?: number;
      readonly besideItemsMax?: number;
      readonly valueCountMax?: number;
    }
  | { readonly outcome: 'invalid-encoding'; readonly message: string }
  | { readonly outcome: 'invalid-json'; readonly message: string };

/** The items of a large batch, and the turns in which they are read. */
export interface ItemsInTurns {
  readonly items: BatchItems;
  readonly nextTurn: NextTurn;
}

/** Undefined if the sender is gone, so that the call must not be taken. */
export type NextTurn = () => Promise<{ isOver(): boolean } | undefined>;

/** A body that cannot be inflated, or must not. */
export type UninflatedBody = Extract<Body, { outcome: 'too-large' | 'invalid-encoding' }>;

export type ContentEncoding = 'identity' | 'gzip' | 'deflate' | 'unsupported';

/**
 * `Content-Encoding` as sent, a list in which empty members and `identity` have no meaning (RFC 9110 §8.4); several
 * codings at once are not supported.
 */
export function readContentEncoding(header: string): ContentEncoding {
  if (header === '') return 'identity';
  const codings = header
    .split(',')
    .map((member) => member.trim().toLowerCase())
    .filter((member) => member !== '' && member !== 'identity');
  const [coding, another] = codings;
  if (coding === undefined) return 'identity';
  if (another !== undefined) return 'unsupported';
  switch (coding) {
    case 'gzip':
    case 'x-gzip':
      return 'gzip';
    case 'deflate':
      return 'deflate';
    default:
      return 'unsupported';
  }
}

const utf8 = new TextDecoder('utf-8', { fatal: true });
const utf8OfItem = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });

/**
 * Reads a body that is not compressed. An empty one reads as `undefined`: some calls have no body.
 *
 * @param itemsKey - undefined: it has no items. A fault in one of them is that item's.
 * @param mayRepeatKey - decides whether a key that an object has twice is looked for.
 */
export function readBody(
  bytes: Uint8Array,
  itemsKey: ItemsKey | undefined,
  mayRepeatKey: KeyLook = NO_LOOK,
): Body {
  const sizeBytes = bytes.byteLength;
  if (sizeBytes === 0) return { outcome: 'read', value: undefined, sizeBytes, hasEscapes: false };
  let text: string;
  try {
    text = utf8.decode(bytes);
  } catch {
    return (
      readLeniently(decodeMarking(bytes), sizeBytes, itemsKey) ?? {
        outcome: 'invalid-json',
        message: 'the body is not valid UTF-8',
      }
    );
  }
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch (error) {
    return (
      readLeniently(text, sizeBytes, itemsKey) ?? {
        outcome: 'invalid-json',
        message: `the body is not valid JSON: ${jsonProblem(error)}`,
      }
    );
  }
  const read = { outcome: 'read', value, sizeBytes, hasEscapes: text.includes('\\u') } as const;
  if (!mayRepeatKey(bytes)) return read;
  const faults = findRepeatedKeys(text, itemsKey);
  return faults.size === 0 ? read : { ...read, faults };
}

/** Texts, numbers, lists and objects of a call about one person: the longest has a thousand members. */
const VALUE_COUNT_MAX = 10_000;

/**
 * As `readBody`, for a call that is no batch and has a large body, by its lists of texts. A body of half a megabyte of
 * brackets alone would take 50 ms: it is refused by a look at its bytes.
 */
export function readLargeBody(
  bytes: Uint8Array,
  { itemsKey, valueCountMax = VALUE_COUNT_MAX }: Pick<Call, 'itemsKey' | 'valueCountMax'>,
  mayRepeatKey: KeyLook = NO_LOOK,
): Body {
  let valueCount = 0;
  for (const byte of bytes)
    // A comma, or an opening bracket or brace; in texts too, in which they are rare.
    if (byte === 0x2c || byte === 0x5b || byte === 0x7b) valueCount++;
  return valueCount > valueCountMax
    ? { outcome: 'too-large', valueCountMax }
    : readBody(bytes, itemsKey, mayRepeatKey);
}

/**
 * Reads one item of a batch. An item that is no JSON has no value.
 *
 * @param startsAt - its place in the body.
 */
export function readItem(
  bytes: Uint8Array,
  startsAt: number,
  mayRepeatKey: KeyLook = NO_LOOK,
): { readonly value: unknown; readonly faults: readonly JsonFault[] } {
  let text: string;
  try {
    text = utf8OfItem.decode(bytes);
  } catch {
    return readLenientItem(decodeMarking(bytes), startsAt);
  }
  try {
    const value: unknown = JSON.parse(text);
    const faults = mayRepeatKey(bytes) ? findRepeatedKeys(text, undefined).get(null) : undefined;
    return { value, faults: faults ?? [] };
  } catch {
    return readLenientItem(text, startsAt);
  }
}

function readLeniently(
  text: string,
  sizeBytes: number,
  itemsKey: ItemsKey | undefined,
): Body | undefined {
  const read = readLenientJson(text, itemsKey);
  // Any other value is no call.
  return read && isJsonObject(read.value)
    ? { outcome: 'read', ...read, sizeBytes, hasEscapes: true }
    : undefined;
}

const WRONG_UNIT = WRONG_BYTE.charCodeAt(0);
/** Characters without any meaning, of as many bytes. */
const STAND_INS = ['\ufdd0', '\ufdd1', '\ufdd2', '\ufdd3'].map((text) => ({
  text,
  bytes: Buffer.from(text),
}));

/**
 * Bytes → text, with `WRONG_BYTE` for bytes that are no UTF-8. U+FFFD that the sender wrote stays: another character
 * stands in for it while the decoder writes its own, unless all of those are there too.
 */
function decodeMarking(bytes: Uint8Array): string {
  const copy = Buffer.from(bytes);
  const standIn = STAND_INS.find((each) => !copy.includes(each.bytes));
  if (standIn !== undefined)
    for (let at = 0; at < copy.length; at++)
      if (copy[at] === 0xef && copy[at + 1] === 0xbf && copy[at + 2] === 0xbd)
        copy.set(standIn.bytes, at);
  const text = Buffer.from(new TextDecoder().decode(copy), 'utf16le');
  // In place: for a body of wrong bytes alone `replaceAll` would take half a second.
  const units = new Uint16Array(text.buffer, text.byteOffset, text.length / 2);
  const standInUnit = standIn?.text.charCodeAt(0);
  for (let index = 0; index < units.length; index++) {
    if (units[index] === 0xfffd) units[index] = WRONG_UNIT;
    else if (units[index] === standInUnit) units[index] = 0xfffd;
  }
  return text.toString('utf16le');
}

/** V8 quotes the text around the fault; the quote may hold personal data, the place is enough. */
function jsonProblem(error: unknown): string {
  const message = error instanceof Error ? error.message : '';
  const place = /at position (\d+)/.exec(message);
  if (place) return `a fault at position ${place[1]}`;
  return message.startsWith('Unexpected end') ? 'it ends too early' : 'it cannot be parsed';
}

/** @param callCount - undefined if the calls in it were not counted. */
export const tooLarge = (callCount: number | undefined): Body =>
  callCount === undefined ? { outcome: 'too-large' } : { outcome: 'too-large', callCount };

/** Used if a client percent-encodes bytes of another encoding than UTF-8. */
export const UNREADABLE_PATH: Body = {
  outcome: 'invalid-encoding',
  message: 'the path is not valid percent-encoding of UTF-8',
};

export function unsupportedEncoding(header: string): Body {
  return {
    outcome: 'invalid-encoding',
    message: `the content encoding ${JSON.stringify(header.slice(0, 50))} is not supported; use gzip, deflate or no encoding`,
  };
}
