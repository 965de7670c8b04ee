/** `npm run bench -- <name>`: runs one benchmark; without a name, lists them. */
import { benchApi } from './api.ts';
import { benchBatch } from './batch.ts';
import { benchIdle } from './idle.ts';
import { benchImports } from './imports.ts';
import { benchBacklog } from './backlog.ts';
import { benchDeliver } from './deliver.ts';
import { benchFairness } from './fairness.ts';
import { benchIntake } from './intake.ts';
import { benchProcess } from './process.ts';
import { benchStream } from './stream.ts';
import { benchTail } from './tail.ts';

const BENCHMARKS: Record<string, { about: string; run: (arguments_: string[]) => Promise<void> }> =
  {
    intake: {
      about:
        'durable intake against a bare uWebSockets.js handler and against Fastify adding a BullMQ job a request',
      run: benchIntake,
    },
    batch: {
      about: 'batches of 100 events against the same events one a request, and against JSON.parse',
      run: benchBatch,
    },
    imports: {
      about: 'one CSV import of 1 GB: rows a second, and memory that stays as it is',
      run: benchImports,
    },
    deliver: {
      about:
        'log → signed POST → attempt recorded, against an undici dispatch loop that only signs and posts',
      run: benchDeliver,
    },
    backlog: {
      about: 'the statements of a lane, and Redis, with 10⁴, 10⁵ and 10⁶ deliveries held back',
      run: benchBacklog,
    },
    fairness: {
      about: 'what healthy webhooks feel when 0 %, 50 % and 90 % of 1,000 hang',
      run: benchFairness,
    },
    stream: {
      about: 'one stream of 1,000,000 lines: lines a second, and memory that stays as it is',
      run: benchStream,
    },
    api: {
      about:
        'an account and a page of its audit log, against a bare Fastify route with the same statement',
      run: benchApi,
    },
    process: {
      about: 'queued envelopes to rows in Postgres, against COPY of the same rows',
      run: benchProcess,
    },
    idle: {
      about: 'CPU, broker commands and transactions of a fleet that has nothing to do',
      run: benchIdle,
    },
    tail: {
      about: 'what the live tail costs intake for each call, while it is read and while it is not',
      run: benchTail,
    },
  };

const [name, ...rest] = process.argv.slice(2);
const chosen = name === undefined ? undefined : BENCHMARKS[name];
if (chosen) {
  await chosen.run(rest);
} else {
  console.log('npm run bench -- <name>\n');
  for (const [known, { about }] of Object.entries(BENCHMARKS))
    console.log(`  ${known.padEnd(10)} ${about}`);
  console.log(
    '\nMost take --rounds N; those under load --seconds N (a measured round) and --connections N. One at a time: they share the cores.',
  );
  process.exitCode = name === undefined || name === '--help' ? 0 : 1;
}
