/**
 * A sender of many real lines is neither refused nor delayed.
 *
 * The lines are packed as tightly as gzip can.
 */
import { gzipSync } from 'node:zlib';
import { afterAll, beforeAll, expect, test, vi } from 'vitest';
import { StreamPace } from '../../../src/stream/stream-pace.ts';
import { startIntakeUnderTest, type IntakeUnderTest } from '../support/intake-under-test.ts';
import { openStream } from '../support/stream-client.ts';

/** The long form, by hand: `STREAM_LINES=1000000`. It takes longer than the 10 s after which uWebSockets.js ends a silent connection. */
const LINE_COUNT = Number(process.env['STREAM_LINES'] ?? 40_000);
const TEST_TIMEOUT_MS = 90_000 + LINE_COUNT / 5;

let intake: IntakeUnderTest;
beforeAll(async () => {
  intake = await startIntakeUnderTest();
});
afterAll(() => intake.close());

/** The mix of `sluice send`: a tenth of identify calls, four of page calls, five of track calls. */
function mixedLine(n: number): object {
  const base = { userId: `person-${n % 1_000}`, messageId: `run-${n}` };
  if (n % 10 === 0)
    return {
      type: 'identify',
      ...base,
      traits: { email: `${base.userId}@example.com`, plan: 'pro' },
    };
  if (n % 10 < 5) return { type: 'page', ...base, name: '/docs', properties: { path: '/docs' } };
  const properties = { product: 'lamp', quantity: 1 + (n % 3), price: 12.5, currency: 'EUR' };
  return { type: 'track', ...base, event: 'Product Viewed', properties };
}

/** The lines that gzip packs best: all of them are equal. */
const equalLine = (): object => ({
  type: 'track',
  userId: 'ann',
  event: 'Tick',
  properties: { text: 'x'.repeat(100) },
});

test.each([
  ['the mix of sluice send', mixedLine],
  ['equal lines', equalLine],
])('%s in gzip -9', { timeout: TEST_TIMEOUT_MS }, async (_, lineOf) => {
  let text = '';
  for (let n = 0; n < LINE_COUNT; n++) text += `${JSON.stringify(lineOf(n))}\n`;
  const body = gzipSync(text, { level: 9 });
  const waits = vi.spyOn(StreamPace.prototype, 'waitMs');
  const startedAtMs = performance.now();
  const stream = openStream(intake.url, {
    'Content-Encoding': 'gzip',
    'Content-Length': String(body.length),
  });
  await stream.write(body);
  expect(await stream.end()).toEqual({ line: LINE_COUNT, refused: 0, end: 'complete' });
  const seconds = (performance.now() - startedAtMs) / 1_000;
  const waited = waits.mock.results.filter(({ value }) => Number(value) >= 1);
  waits.mockRestore();
  expect(waited).toEqual([]);
  // Read with `STREAM_LINES`: no bar, for others use the cores too.
  if (process.env['STREAM_LINES'] !== undefined)
    process.stdout.write(
      `${LINE_COUNT} lines of ${body.length} bytes, ratio ${Math.round(text.length / body.length)}, ${Math.round(LINE_COUNT / seconds)} a second\n`,
    );
});
