/**
 * A consumer of a feed that may be killed anywhere.
 *
 * It saves the cursor with its results, and has each event once.
 */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, rm } from 'node:fs/promises';
import { DatabaseSync } from 'node:sqlite';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { DEMO } from '@sluice/database/demo/seed-demo';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { startFleet, type Fleet } from './fleet-under-test.ts';

const CONSUMER = fileURLToPath(new URL('feed-consumer.mjs', import.meta.url));
const POINTS = [
  ...['before asking', 'asking', 'with the page', 'at work', 'before the commit'],
  'after the commit',
];

let fleet: Fleet;
let directory: string;
beforeAll(async () => {
  fleet = await startFleet();
  directory = await mkdtemp(join(tmpdir(), 'feed-consumer-'));
});
afterAll(async () => {
  await fleet.close();
  await rm(directory, { recursive: true, force: true });
});

/** @returns the reason of its end. */
async function consume(file: string, killed: Readonly<Record<string, string>> = {}) {
  const arguments_ = [CONSUMER, `${fleet.api.url}/v1/feeds/consumed`, DEMO.appKey, file];
  const child = spawn(process.execPath, ['--disable-warning=ExperimentalWarning', ...arguments_], {
    env: killed,
    stdio: ['ignore', 'inherit', 'inherit'],
  });
  const [exitCode, signal] = (await once(child, 'close')) as [number | null, string | null];
  return signal ?? exitCode;
}

async function expectAnswered(url: string, method: string, authorization: string, body: object) {
  const headers = { authorization, 'content-type': 'application/json' };
  const answer = await fetch(url, { method, headers, body: JSON.stringify(body) });
  expect(answer.ok, await answer.text()).toBe(true);
}

// It starts thirteen consumers, one after another.
const TEST_TIMEOUT_MS = 300_000;

test(
  'each event has its result once and in order, after a kill at any point of the consumer',
  async () => {
    await expectAnswered(`${fleet.api.url}/v1/feeds/consumed`, 'PUT', `Bearer ${DEMO.appKey}`, {
      events: ['event'],
    });
    const sent: string[] = [];
    const send = async (): Promise<void> => {
      const ids = Array.from({ length: 10 }, (_, index) => `consumed-${sent.length + index}`);
      await expectAnswered(
        `${fleet.intake.url}/v1/batch`,
        'POST',
        `Basic ${btoa(`${DEMO.writeKey}:`)}`,
        {
          batch: ids.map((id) => ({ type: 'track', userId: 'one', event: id, messageId: id })),
        },
      );
      sent.push(...ids);
      await fleet.event('one', ids.at(-1) as string);
    };
    const file = join(directory, 'results.sqlite');
    for (const point of POINTS)
      for (const passes of ['0', '1']) {
        await send();
        const ending = await consume(file, { KILLED_AT: point, KILLED_AFTER: passes });
        expect(ending, point).toBe('SIGKILL');
      }
    expect(await consume(file)).toBe(0);
    const database = new DatabaseSync(file, { readOnly: true });
    const results = database.prepare('select event_id from results order by place').all();
    database.close();
    expect(results.map((row) => row['event_id'])).toEqual(sent);
  },
  TEST_TIMEOUT_MS,
);
