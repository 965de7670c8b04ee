/**
 * Search for a key that an object has twice: `JSON.parse` silently takes the last value.
 *
 * One pass over the bytes takes a quarter of the time of `JSON.parse`: 31 µs of 119 for a batch of 100 identify calls
 * (30 KB), 0.5 of the 13 µs of a track call (Node 22). The name of the key is found afterwards, by
 * `domain/src/parsing/lenient-json.ts`.
 *
 * In strict mode each body is searched, because it is refused. In permissive mode the last value counts, and the search
 * is for an issue alone: it must not cost 4 to 7 % of intake. So intake searches as many bytes a second as 0.5 % of a
 * core can read: every call of an ordinary installation (4,500 track calls, or 33 batches of 100), and a part of them
 * beyond. That is for all workspaces together: a call that is not searched loses only the issue. Before:
 * `read-body.ts`.
 */

const QUOTE = 0x22;
const BACKSLASH = 0x5c;
const COMMA = 0x2c;
const OPENING_BRACKET = 0x5b;
const CLOSING_BRACKET = 0x5d;
const OPENING_BRACE = 0x7b;
const CLOSING_BRACE = 0x7d;

const DEPTH_MAX = 255;
/** Of all objects that are open. Each key is compared with those before it: a thousand take 0.4 ms. */
const KEY_COUNT_MAX = 1_024;

/** By level. They are used by one call at a time. */
const firstKeys = new Uint16Array(DEPTH_MAX + 1);
const isObject = new Uint8Array(DEPTH_MAX + 1);
/** FNV-1a of the keys of all objects that are open. */
const hashes = new Int32Array(KEY_COUNT_MAX);

/**
 * @param bytes - valid JSON.
 * @returns true also if the search stopped early: an escape in a key, more levels or keys than the bounds, two hashes
 * that are equal by chance.
 */
export const mayRepeatKey = (bytes: Uint8Array): boolean => repeatsKey(bytes, true);

/** @param ofManyKeys - the answer for more keys than the bound. */
function repeatsKey(bytes: Uint8Array, ofManyKeys: boolean): boolean {
  let level = 0;
  let keyCount = 0;
  let isKeyNext = false;
  for (let at = 0; at < bytes.length; at++) {
    switch (bytes[at] as number) {
      case QUOTE: {
        at++;
        if (!isKeyNext) {
          for (let byte = bytes[at]; byte !== QUOTE; byte = bytes[++at])
            if (byte === BACKSLASH) at++;
          break;
        }
        let hash = 0x811c9dc5 | 0;
        for (let byte = bytes[at] as number; byte !== QUOTE; byte = bytes[++at] as number) {
          if (byte === BACKSLASH) return true;
          hash = Math.imul(hash ^ byte, 0x01000193);
        }
        for (let index = firstKeys[level] as number; index < keyCount; index++)
          if (hashes[index] === hash) return true;
        if (keyCount === KEY_COUNT_MAX) return ofManyKeys;
        hashes[keyCount++] = hash;
        isKeyNext = false;
        break;
      }
      case OPENING_BRACE:
      case OPENING_BRACKET:
        if (level === DEPTH_MAX) return true;
        isKeyNext = bytes[at] === OPENING_BRACE;
        level++;
        firstKeys[level] = keyCount;
        isObject[level] = isKeyNext ? 1 : 0;
        break;
      case CLOSING_BRACE:
      case CLOSING_BRACKET:
        keyCount = firstKeys[level] as number;
        level--;
        isKeyNext = false;
        break;
      case COMMA:
        isKeyNext = isObject[level] === 1;
    }
  }
  return false;
}

/** Whether a body of valid JSON may have a key twice in an object. False also if it is not looked at. */
export type KeyLook = (bytes: Uint8Array) => boolean;

const BYTES_PER_SECOND = 1_000_000;
/** Bytes that are saved up while few calls come: the largest batch of permissive mode. */
const SAVED_BYTES_MAX = 4_000_000;
/** A body with such a key is read once more, for its place: 20 ms a megabyte (`domain/src/parsing/lenient-json.ts`). */
const LOOKS_PER_READING = 10;
/** While few bytes are left: a clock costs more than the rest of a call that is not searched. */
const CALLS_PER_LOOK_AT_CLOCK = 16;
const FEW_BYTES = 8_192;

/** Of one process. */
export class RepeatedKeyLooks {
  readonly #monotonicNow: () => number;
  #leftBytes = SAVED_BYTES_MAX;
  #filledAtMs: number;
  /** So many calls pass before the next look at the clock. */
  #passingCount = 0;

  constructor(monotonicNow: () => number) {
    this.#monotonicNow = monotonicNow;
    this.#filledAtMs = monotonicNow();
  }

  /** The look of a body in permissive mode. */
  readonly mayRepeatKey: KeyLook = (bytes) => {
    // First, since it is the way of nearly all calls of a busy process.
    if (this.#passingCount > 0) {
      this.#passingCount--;
      return false;
    }
    if (bytes.length > this.#leftBytes && !this.#fillFor(bytes.length)) return false;
    this.#leftBytes -= bytes.length;
    // An object with more keys is rare: it loses the issue alone, and reading it for the place takes 7 ms.
    if (!repeatsKey(bytes, false)) return false;
    this.#leftBytes -= LOOKS_PER_READING * bytes.length;
    return true;
  };

  #fillFor(sizeBytes: number): boolean {
    const nowMs = this.#monotonicNow();
    const added = ((nowMs - this.#filledAtMs) / 1_000) * BYTES_PER_SECOND;
    this.#filledAtMs = nowMs;
    this.#leftBytes = Math.min(SAVED_BYTES_MAX, this.#leftBytes + added);
    if (sizeBytes <= this.#leftBytes) return true;
    if (this.#leftBytes < FEW_BYTES) this.#passingCount = CALLS_PER_LOOK_AT_CLOCK - 1;
    return false;
  }
}

/** The search for a body in which only wrong syntax is reported. */
export const NO_LOOK: KeyLook = () => false;
