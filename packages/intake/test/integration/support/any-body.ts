/**
 * Random bodies (for `any-request.ts`): any bytes, valid calls with a change in them, and their encodings, real and
 * declared.
 */
import { deflateRawSync, deflateSync, gzipSync } from 'node:zlib';
import fc from 'fast-check';

/** Texts with a meaning for some parser, or for no parser. */
export const text = fc.oneof(
  fc.string({ unit: 'binary', maxLength: 12 }),
  fc.constantFrom('u1', 'u1@example.com', 'cio_a30001', 'a\0b', '\ud800', '1', '', ' ', 'ü'),
  fc.integer({ min: 1, max: 300 }).map((length) => 'x'.repeat(length)),
);
const hostileValue = fc.oneof(
  text,
  fc.constantFrom<unknown>(null, true, 0, -1, 1e12, 1e300, 2 ** 53, [], {}),
  fc.constantFrom<unknown>([[[]]], [null], { id: 'u1', email: 'u1@example.com' }, { a: {} }),
  fc.constantFrom<unknown>('x'.repeat(1_001), 'ü'.repeat(40_000), 'a\0', '\udc00', '1e400'),
  fc.jsonValue({ maxDepth: 3 }),
);
const hostileKey = fc.oneof(
  text,
  fc.constantFrom('__proto__', 'constructor', 'toString', 'type', 'id', 'email', 'phone', 'cio_id'),
);
const snippet = fc.constantFrom(
  '"', '{', '}', '[', ']', ',', ':', 'null', '1e999', '-', '\\u0000', '\\ud800', '\\', '\n', '\0', '\uFEFF', '"__proto__":{},',
  '"a":1,"a":2,', '9'.repeat(400), '['.repeat(500), 'ü',
); // prettier-ignore

/** Somewhere in a value, something else. */
function changed(value: unknown, seed: number, key: string, other: unknown): unknown {
  if (typeof value !== 'object' || value === null) return other;
  const names = Object.keys(value);
  const at = seed % (names.length + 2);
  const copy = (Array.isArray(value) ? [...value] : { ...value }) as Record<string, unknown>;
  const name = names[at];
  if (name === undefined && at === names.length) return other;
  Object.defineProperty(copy, name ?? key, {
    value: name === undefined ? other : changed(copy[name], Math.floor(seed / 7), key, other),
    enumerable: true,
    configurable: true,
    writable: true,
  });
  return copy;
}

const jsonOf = (samples: readonly unknown[]): fc.Arbitrary<string> => {
  const value = fc
    .tuple(
      fc.constantFrom(...samples),
      fc.array(fc.tuple(fc.nat(), hostileKey, hostileValue), { maxLength: 3 }),
    )
    .map(([sample, changes]) =>
      changes.reduce((body, [seed, key, other]) => changed(body, seed, key, other), sample),
    );
  const json = value.map((body) => JSON.stringify(body) ?? '');
  const edited = fc
    .tuple(json, fc.array(fc.tuple(fc.nat(), fc.nat(6), snippet), { minLength: 1, maxLength: 3 }))
    .map(([whole, edits]) =>
      edits.reduce((body, [at, dropped, put]) => {
        const start = at % (body.length + 1);
        return body.slice(0, start) + put + body.slice(start + dropped);
      }, whole),
    );
  return fc.oneof({ weight: 4, arbitrary: json }, { weight: 2, arbitrary: edited });
};

/** One body, made from bodies that are taken. */
export const bodyOf = (samples: readonly unknown[]): fc.Arbitrary<Buffer> =>
  fc.oneof(
    { weight: 8, arbitrary: jsonOf(samples).map((json) => Buffer.from(json)) },
    { weight: 2, arbitrary: fc.uint8Array({ maxLength: 200 }).map((bytes) => Buffer.from(bytes)) },
    { weight: 1, arbitrary: fc.constant(Buffer.alloc(0)) },
    {
      weight: 1,
      arbitrary: fc
        .integer({ min: 30_000, max: 1_200_000 })
        .map((length) => Buffer.from(`{"userId":"u1","event":"${'x'.repeat(length)}"}`)),
    },
  );

/** The declared encoding of the body, and its real one. */
const encodings: readonly (readonly [string | undefined, (body: Buffer) => Buffer])[] = [
  [undefined, (body) => body],
  ['identity', (body) => body],
  ['gzip', (body) => gzipSync(body)],
  ['deflate', (body) => deflateSync(body)],
  ['deflate', (body) => deflateRawSync(body)],
  ['gzip', (body) => body],
  ['deflate', (body) => body],
  ['gzip', (body) => gzipSync(body).subarray(0, 15)],
  ['gzip', (body) => Buffer.concat([gzipSync(body), gzipSync(body)])],
  ['gzip', (body) => Buffer.concat([gzipSync(body), Buffer.from('tail')])],
  ['gzip', () => gzipSync(Buffer.alloc(3_000_000, 32))],
  ['br', (body) => body],
  ['gzip, gzip', (body) => gzipSync(gzipSync(body))],
];
export const encoding = fc.oneof(
  { weight: 6, arbitrary: fc.constant(encodings[0]!) },
  { weight: 5, arbitrary: fc.constantFrom(...encodings) },
);
