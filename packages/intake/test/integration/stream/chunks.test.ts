/** Streams in chunks of any size: honest senders are never cut, and no sender keeps the event loop for long. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import fc from 'fast-check';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { capacityOfOne } from '../../support/capacity-of-one.ts';
import {
  PIPELINES_AUTHORIZATION,
  startIntakeUnderTest,
  type IntakeUnderTest,
} from '../support/intake-under-test.ts';
import type { SenderShape } from '../support/chunk-sender.ts';
import { expectUnharmed } from '../support/unharmed.ts';

const SENDER = join(import.meta.dirname, '../support/chunk-sender.ts');

/** The long form, by hand: `CHUNK_RUNS=100` takes bodies of up to 12 MB. */
const RUN_COUNT = Number(process.env['CHUNK_RUNS'] ?? 4);
const IS_LONG = process.env['CHUNK_RUNS'] !== undefined;
const CHUNK_COUNT_MAX = IS_LONG ? 1_000_000 : 60_000;
const BODY_SIZE_BYTES_MAX = (IS_LONG ? 12 : 3) * 1_000_000;

/** Of processor time, which a crowded machine makes four times as long. The turn has the worker of the test in it. */
const LONGEST_TURN_MS = 250;

let intake: IntakeUnderTest;
beforeAll(async () => {
  intake = await startIntakeUnderTest(undefined, { places: capacityOfOne(20) });
});
afterAll(() => intake.close());

const startSender = (shape: SenderShape) =>
  spawn(
    process.execPath,
    [SENDER, String(intake.port), PIPELINES_AUTHORIZATION, JSON.stringify(shape)],
    { stdio: ['ignore', 'pipe', 'inherit'] },
  );

/** Milliseconds of processor time that this process used in the longest of the turns of the event loop while `work` ran. */
async function longestTurnMs(work: () => Promise<void>): Promise<number> {
  let longest = 0;
  let before = process.cpuUsage();
  let isOver = false;
  const look = (): void => {
    const { user, system } = process.cpuUsage(before);
    before = process.cpuUsage();
    longest = Math.max(longest, (user + system) / 1_000);
    if (!isOver) setImmediate(look);
  };
  look();
  await work().finally(() => (isOver = true));
  return longest;
}

/** Sends a shape, and returns how each stream ended. */
async function endsOf(shape: SenderShape): Promise<readonly unknown[]> {
  (intake.operations as unknown[]).length = 0;
  const sender = startSender(shape);
  let text = '';
  sender.stdout.setEncoding('utf8').on('data', (part: string) => (text += part));
  await once(sender, 'close');
  return (JSON.parse(text.split('\n')[1] ?? '[]') as string[]).map((line) => {
    try {
      return JSON.parse(line) as unknown;
    } catch {
      return line;
    }
  });
}

const shapes: fc.Arbitrary<SenderShape> = fc
  .record({
    chunkSizeBytes: fc.oneof(fc.integer({ min: 1, max: 64 }), fc.integer({ min: 1, max: 4_096 })),
    lineSizeBytes: fc.integer({ min: 29, max: 400 }),
    clientCount: fc.integer({ min: 1, max: 10 }),
    bodySizeBytes: fc.integer({ min: 1_000_000, max: BODY_SIZE_BYTES_MAX }),
  })
  .map(({ bodySizeBytes, ...shape }) => {
    const sizeBytes = Math.min(
      bodySizeBytes,
      (CHUNK_COUNT_MAX * shape.chunkSizeBytes) / shape.clientCount,
    );
    return { ...shape, lineCount: Math.max(1, Math.floor(sizeBytes / shape.lineSizeBytes)) };
  });

test(
  'clients of any chunks, lines and number are taken to their last line, in short turns',
  { timeout: 120_000 + RUN_COUNT * 60_000 },
  async () => {
    let longest = 0;
    await fc.assert(
      fc.asyncProperty(shapes, async (shape) => {
        let ends: readonly unknown[] = [];
        const turnMs = await longestTurnMs(async () => void (ends = await endsOf(shape)));
        if (IS_LONG) process.stdout.write(`${JSON.stringify(shape)} ${turnMs.toFixed(1)} ms\n`);
        longest = Math.max(longest, turnMs);
        const end = { line: shape.lineCount, refused: 0, end: 'complete' };
        expect(ends).toEqual(Array(shape.clientCount).fill(end));
      }),
      {
        numRuns: RUN_COUNT,
        examples: [
          // Each line in a chunk of its own.
          [{ chunkSizeBytes: 29, lineSizeBytes: 29, clientCount: 1, lineCount: CHUNK_COUNT_MAX }],
          [
            {
              chunkSizeBytes: 29,
              lineSizeBytes: 29,
              clientCount: 10,
              lineCount: CHUNK_COUNT_MAX / 10,
            },
          ],
          // The kernel keeps all bytes of ten connections, and they come at once.
          [
            {
              chunkSizeBytes: 4_096,
              lineSizeBytes: 400,
              clientCount: 10,
              lineCount: BODY_SIZE_BYTES_MAX / 400,
            },
          ],
        ],
      },
    );
    process.stdout.write(`longest turn ${longest.toFixed(1)} ms\n`);
    expect(longest).toBeLessThan(LONGEST_TURN_MS);
  },
);

// With the buffers of the kernel, all that it keeps of a connection comes in one turn: clients in Go and Java were cut.
test.each([1, 3])(
  '%i senders of prepared lines, faster than clients make chunks, are taken to their last line',
  { timeout: 120_000 },
  async (clientCount) => {
    const lineCount = 150_000;
    const shape = { chunkSizeBytes: 29, lineSizeBytes: 29, clientCount, lineCount };
    let ends: readonly unknown[] = [];
    const longest = await longestTurnMs(
      async () => void (ends = await endsOf({ ...shape, isPrepared: true })),
    );
    const end = { line: lineCount, refused: 0, end: 'complete' };
    expect(ends).toEqual(Array(clientCount).fill(end));
    expect(Object.fromEntries(intake.cuts.counts)).toMatchObject({ too_many_chunks: 0 });
    expect(longest).toBeLessThan(LONGEST_TURN_MS);
  },
);

test.each([32, 200])(
  'ten senders of prepared chunks of %i bytes take short turns',
  { timeout: 180_000 },
  async (chunkSizeBytes) => {
    const shape = { chunkSizeBytes, lineSizeBytes: chunkSizeBytes, clientCount: 10, lineCount: 1 };
    const sender = startSender({ ...shape, isHostile: true });
    await once(sender.stdout, 'data');
    const longest = await longestTurnMs(() => sleep(2_000));
    await expectUnharmed(intake);
    sender.kill('SIGKILL');
    await once(sender, 'close');
    process.stdout.write(`chunks of ${chunkSizeBytes}: longest turn ${longest.toFixed(1)} ms\n`);
    expect(longest).toBeLessThan(LONGEST_TURN_MS);
  },
);
