import fc from 'fast-check';
import { expect, test } from 'vitest';
import { readCallHead, readHead } from '../../src/http/request-head.ts';

const header = fc.tuple(
  fc.constantFrom(
    ...['host', 'origin', 'authorization', 'x-strict-mode', 'content-length', 'content-encoding'],
    ...['transfer-encoding', 'x-forwarded-for', 'forwarded', 'user-agent'],
  ),
  fc.constantFrom('', '1', 'chunked', 'gzip', 'a.example', 'Basic a2V5Og=='),
);
const source = (headers: readonly (readonly [string, string])[]) => ({
  forEach: (each: (name: string, value: string) => void) =>
    headers.forEach(([name, value]) => each(name, value)),
});

test('the head of a call has its own fields alone, after any other call', () => {
  fc.assert(
    fc.property(fc.array(fc.array(header, { maxLength: 12 }), { maxLength: 5 }), (calls) => {
      for (const headers of calls)
        expect(readCallHead(source(headers))).toEqual(readHead(source(headers)));
    }),
    { numRuns: 300 },
  );
});
