/**
 * Secrets that we hand out: made here, shown once, kept as SHA-256 and four characters.
 *
 * A service account's token is `sa_live_` or `sa_sandbox_`, 43 random base62 characters (256 bits)
 * and six that are a checksum of all before, so that scanners of leaked secrets can recognise a
 * token without asking us.
 */
import { createHash, randomInt } from 'node:crypto';
import { crc32 } from 'node:zlib';

const BASE62 = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz';
const RANDOM_LENGTH = 43;
const CHECKSUM_LENGTH = 6;
const HINT_LENGTH = 4;

export interface Secret {
  /** To be shown once and never kept. */
  readonly text: string;
  readonly hash: Buffer;
  /** The last characters, to distinguish secrets. */
  readonly hint: string;
}

/** How secrets are kept and looked up: SHA-256. They are random enough to need no slow hash. */
export function hashSecret(text: string): Buffer {
  return createHash('sha256').update(text).digest();
}

/** A new token of a service account. */
export function newServiceAccountToken(isSandbox: boolean): Secret {
  const text = `${isSandbox ? 'sa_sandbox_' : 'sa_live_'}${randomText(RANDOM_LENGTH)}`;
  return toSecret(text + checksum(text));
}

/** A new key for a workspace: Track, Pipelines or app API. */
export function newKey(length = RANDOM_LENGTH): Secret {
  return toSecret(randomText(length));
}

/** True if the text ends in the checksum of the part before. */
export function hasChecksum(text: string): boolean {
  return text.slice(-CHECKSUM_LENGTH) === checksum(text.slice(0, -CHECKSUM_LENGTH));
}

function toSecret(text: string): Secret {
  return { text, hash: hashSecret(text), hint: text.slice(-HINT_LENGTH) };
}

const randomText = (length: number): string =>
  Array.from({ length }, () => BASE62[randomInt(BASE62.length)]).join('');

function checksum(text: string): string {
  let rest = crc32(text);
  let digits = '';
  for (let place = 0; place < CHECKSUM_LENGTH; place += 1) {
    digits = BASE62[rest % BASE62.length] + digits;
    rest = Math.floor(rest / BASE62.length);
  }
  return digits;
}
