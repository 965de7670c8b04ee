/** A sender that goes away, at any stage of any transport: the work ends, and the held capacity is free. */
import { gzipSync } from 'node:zlib';
import fc from 'fast-check';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { cuts, items, sendAndCut, TRANSPORTS } from '../support/cut-senders.ts';
import { heldSizeBytes, isIdle, isReleased } from '../support/held-memory.ts';
import {
  PIPELINES_AUTHORIZATION,
  startIntakeUnderTest,
  type IntakeUnderTest,
} from '../support/intake-under-test.ts';
import { expectUnharmed } from '../support/unharmed.ts';

let intake: IntakeUnderTest;
beforeAll(async () => {
  intake = await startIntakeUnderTest();
});
afterAll(() => intake.close());

/** As many compressed bodies as are inflated at a time: each of their places is free. */
async function expectInflated(): Promise<void> {
  const answers = await Promise.all(
    Array.from({ length: 8 }, () =>
      fetch(`${intake.url}/v1/batch`, {
        method: 'POST',
        headers: { Authorization: PIPELINES_AUTHORIZATION, 'Content-Encoding': 'gzip' },
        body: gzipSync(items(10)),
      }),
    ),
  );
  expect(answers.map(({ status }) => status)).toEqual(Array(8).fill(200));
}

test(
  'a call, a batch or a stream that is cut at any stage leaves no work and no memory',
  { timeout: 300_000 },
  async () => {
    const warmUp = TRANSPORTS.map((transport) =>
      sendAndCut(intake.port, { transport, sentShare: 1, waitMs: 100, isReset: false }),
    );
    await Promise.all(warmUp);
    await isIdle(intake);
    const before = heldSizeBytes(intake);
    await fc.assert(
      fc.asyncProperty(fc.array(cuts, { minLength: 4, maxLength: 8 }), async (several) => {
        await Promise.all(several.map((cut) => sendAndCut(intake.port, cut)));
      }),
      { numRuns: 20 },
    );
    await isIdle(intake);
    await isReleased(intake, before);
    await expectInflated();
    await expectUnharmed(intake);
  },
);
