/**
 * One stream of 1,000,000 lines through a real intake. Its Redis has `appendfsync always`. It
 * measures lines a second, and intake's peak memory, which must not depend on the number of lines.
 *
 * A reader removes the commit batches from Redis as they come, as workers would.
 */
import { request } from 'node:http';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { Readable } from 'node:stream';
import { parseArgs } from 'node:util';
import { createGzip } from 'node:zlib';
import { createLogger } from '@sluice/platform/process/logger';
import { startConsumers } from '@sluice/platform/consumers/queue-consumers';
import type { ChildServer } from './child-server.ts';
import type { Report } from './report.ts';
import { withWorld } from './world.ts';

const SHARD_COUNT = 4;
const PORT = 18_084;
const PIECE_LINES = 1_000;
const SAMPLE_INTERVAL_MS = 100;
const PREFIX = 'bench-stream';

interface Run {
  readonly seconds: number;
  readonly acknowledgements: number;
  /** Intake's resident memory: when a tenth was through, and the most after that. */
  readonly earlyBytes: number;
  readonly peakBytes: number;
}

export async function benchStream(arguments_: string[]): Promise<Report> {
  const { values } = parseArgs({
    args: arguments_,
    options: { lines: { type: 'string', default: '1000000' }, gzip: { type: 'boolean' } },
  });
  const lineCount = Number(values.lines);
  return withWorld('none', async (world) => {
    let operationCount = 0;
    const consumers = await startConsumers(
      {
        databaseUrl: world.databaseUrl,
        redisUrl: world.redisServer.url,
        prefix: PREFIX,
        shardCount: SHARD_COUNT,
        logger: createLogger('bench', 'silent'),
      },
      {
        processCommitBatch(commitBatch) {
          operationCount += commitBatch.operations.length;
          return Promise.resolve({ outcome: 'done' });
        },
        wakeLane: () => Promise.resolve({ outcome: 'done' }),
        laneConcurrency: 1,
        now: Date.now,
      },
    );
    world.onClose(() => consumers.close());
    const intake = await world.startService('intake', PORT, {
      REDIS_URL: world.redisServer.url,
      QUEUE_PREFIX: PREFIX,
      SHARD_COUNT: String(SHARD_COUNT),
      INTAKE_SPILL_DIRECTORY: join(world.directory, 'spill'),
    });
    const run = await sendLines(intake, lineCount, values.gzip === true);
    for (const deadline = Date.now() + 60_000; operationCount < lineCount;) {
      if (Date.now() > deadline)
        throw new Error(`${lineCount} lines acknowledged, ${operationCount} in the queues`);
      await new Promise((resolve) => setTimeout(resolve, 50));
    }
    const mebibytes = (bytes: number) => Math.round(bytes / 2 ** 20);
    console.log(
      `${lineCount.toLocaleString('en')} lines in ${run.seconds.toFixed(1)} s, ${run.acknowledgements.toLocaleString('en')} acknowledgements, ` +
        `intake at most ${mebibytes(run.peakBytes)} MB (${mebibytes(run.earlyBytes)} MB when a tenth was through)`,
    );
    return {
      bench: values.gzip ? 'stream-gzip' : 'stream',
      ratios: { 'peak/early memory': run.peakBytes / run.earlyBytes },
      rates: { lines: lineCount / run.seconds },
      latencyMs: {},
      details: {
        lines: lineCount,
        line_bytes: line(0).length,
        acknowledgements: run.acknowledgements,
        early_resident_mb: mebibytes(run.earlyBytes),
        peak_resident_mb: mebibytes(run.peakBytes),
        redis: 'appendonly yes, appendfsync always',
      },
    };
  });
}

const line = (n: number): string =>
  `${JSON.stringify({
    type: 'track',
    userId: `user-${n % 10_000}`,
    event: 'Order Placed',
    messageId: `line-${n}`,
    properties: { plan: 'pro', amount: 42.5, currency: 'EUR', items: ['sku-1', 'sku-2'] },
    timestamp: '2026-11-20T10:00:00.123Z',
  })}\n`;

function* pieces(lineCount: number): Generator<Buffer> {
  for (let from = 0; from < lineCount; from += PIECE_LINES) {
    const to = Math.min(lineCount, from + PIECE_LINES);
    let text = '';
    for (let n = from; n < to; n++) text += line(n);
    yield Buffer.from(text);
  }
}

async function sendLines(intake: ChildServer, lineCount: number, isGzip: boolean): Promise<Run> {
  let acknowledgements = 0;
  let acknowledgedLine = 0;
  let earlyBytes = 0;
  let peakBytes = 0;
  const sampling = setInterval(() => {
    void intake.residentBytes().then((bytes) => {
      if (acknowledgedLine < lineCount / 10) earlyBytes = Math.max(earlyBytes, bytes);
      peakBytes = Math.max(peakBytes, bytes);
    });
  }, SAMPLE_INTERVAL_MS);
  const startedAtMs = performance.now();
  try {
    const end = await new Promise<{ line: number; end?: string }>((resolve, reject) => {
      const sender = request(`${intake.url}/v1/stream`, {
        method: 'POST',
        headers: {
          Authorization: `Basic ${Buffer.from('demo_write_key:').toString('base64')}`,
          ...(isGzip ? { 'Content-Encoding': 'gzip' } : {}),
        },
      });
      sender.on('error', reject);
      sender.on('response', (response) => {
        let last: { line: number; end?: string } = { line: 0 };
        createInterface({ input: response })
          .on('line', (text) => {
            last = JSON.parse(text) as typeof last;
            acknowledgements++;
            acknowledgedLine = last.line;
          })
          .once('close', () => resolve(last));
      });
      const body = Readable.from(pieces(lineCount));
      if (isGzip) body.pipe(createGzip({ level: 1 })).pipe(sender);
      else body.pipe(sender);
    });
    if (end.end !== 'complete' || end.line !== lineCount)
      throw new Error(`the stream ended with ${JSON.stringify(end)}`);
  } finally {
    clearInterval(sampling);
  }
  const seconds = (performance.now() - startedAtMs) / 1_000;
  return { seconds, acknowledgements, earlyBytes, peakBytes };
}
