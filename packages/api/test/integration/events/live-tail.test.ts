/** The live tail over real sockets: the lines of a reader, and the cost of one that is slow, gone or revoked. */
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { TailLine } from '@sluice/domain/operations/tail';
import { lineTopic } from '@sluice/platform/tail/tail-messages';
import type { TailChannel } from '@sluice/platform/tail/tail-channel';
import { sql } from 'kysely';
import { afterAll, afterEach, beforeAll, expect, onTestFinished, test, vi } from 'vitest';
import { TailHub } from '../../../src/events/tail-hub.ts';
import { expectProblem } from '../../support/error-shapes.ts';
import { startApi, type ApiUnderTest } from '../support/api-under-test.ts';
import { insertKey } from '../support/inserted-rows.ts';
import { openTailReader, type TailReader } from '../support/tail-reader.ts';

const WAIT = { timeout: 30_000, interval: 10 };
/** Hundreds of thousands of lines, on a machine that others use too. */
const MANY_LINES_TIMEOUT_MS = 240_000;

/** The fleet's end of the channel, in this process. */
const listeners = new Map<string, (text: string) => void>();
const announced: string[] = [];
let isAway = false;
/** Of the API's clock. */
let skewMs = 0;
/** The API's clock stands still, however slow the test is. */
let stoppedAtMs: number | undefined;
const apiNow = (): number => (stoppedAtMs ?? Date.now()) + skewMs;
const channel: TailChannel = {
  messageSizeBytesMax: 64 * 1024,
  burstSizeBytesMax: 512 * 1024,
  publish: async (_topic, text) => {
    if (isAway) throw new Error('away');
    announced.push(text);
  },
  listen: async (topic, onText) => void listeners.set(topic, onText),
  unlisten: async (topic) => void listeners.delete(topic),
  close: async () => {},
};

let api: ApiUnderTest;
let port: number;
let hub: TailHub;
const opened: IncomingMessage[] = [];

beforeAll(async () => {
  hub = new TailHub({ channel, id: 'hub', logger: { warn: () => undefined } as never });
  api = await startApi({
    openTail: (environmentId, filter, onLines) => hub.open(environmentId, filter, onLines),
    tailDurationMsMax: 600_000,
    now: apiNow,
    monotonicNow: apiNow,
  });
  await api.app.listen({ port: 0, host: '127.0.0.1' });
  port = (api.app.server.address() as AddressInfo).port;
});
afterEach(async () => {
  for (const answer of opened.splice(0)) answer.destroy();
  await vi.waitFor(expectNoReaders, WAIT);
});
afterAll(() => api.close());
const expectNoReaders = () =>
  expect([api.a, api.b].map(({ environmentId }) => hub.readerCount(environmentId))).toEqual([0, 0]);

interface TailOptions {
  readonly key?: string;
  readonly isSlow?: boolean;
  readonly headers?: Record<string, string>;
}

async function openTail(query = '', options: TailOptions = {}): Promise<TailReader> {
  const reader = await openTailReader({ port, key: api.a.key, query, ...options });
  opened.push(reader.answer);
  return reader;
}

const line = (name: string, changes: Partial<TailLine> = {}): TailLine => ({
  kind: 'received',
  at_ms: 1,
  outcome: 'accepted',
  name,
  people: [{ email: 'ada@example.com' }],
  details: {},
  ...changes,
});

const tell = (environmentId: number, lines: TailLine[], dropped = 0): void =>
  listeners.get(lineTopic(environmentId))?.(JSON.stringify({ dropped, lines }));

/** More than any socket's buffers, a little at a time: lines that do not fit are dropped. */
async function fillSockets(): Promise<void> {
  for (let round = 0; round < 200; round++) {
    tell(
      api.a.environmentId,
      Array.from({ length: 1_000 }, () => line('x'.repeat(150))),
    );
    await new Promise((resolve) => setImmediate(resolve));
  }
}

const revoke = (key: string) =>
  sql`
    update api_credentials set revoked_at = now()
    where environment_id = ${api.a.environmentId} and secret_hash = sha256(${key}::bytea)`.execute(
    api.database,
  );

test('a reader gets the lines of its workspace as server-sent events, as they come', async () => {
  const reader = await openTail();
  expect(reader.answer.headers['content-type']).toBe('text/event-stream; charset=utf-8');
  expect(reader.answer.headers['cache-control']).toBe('no-store');
  tell(api.a.environmentId, [line('a'), line('r', { kind: 'reported', outcome: 'delivered' })]);
  await vi.waitFor(() => expect(reader.events('reported')).toHaveLength(1), WAIT);
  expect(reader.events('received')).toEqual([line('a')]);
  expect(reader.read()).toMatch(/^: listening\n\nevent: received\nid: \S+\ndata: /);
});

test('after a malformed tail message the readers still receive lines', async () => {
  const reader = await openTail('?person=ada@example.com');
  const hear = listeners.get(lineTopic(api.a.environmentId));
  for (const text of [
    '{',
    'null',
    '{"lines":[]}',
    '{"dropped":0}',
    '{"dropped":0,"lines":[{"people":[{"email":7}]}]}',
  ])
    hear?.(text);
  tell(api.a.environmentId, [line('a')]);
  await vi.waitFor(() => expect(reader.events('received')).toEqual([line('a')]), WAIT);
});

test('the API announces the filters of all readers, and an empty list after the last reader leaves', async () => {
  const [one, other] = [await openTail('?name=a'), await openTail('?person=x&outcome=refused')];
  expect(JSON.parse(announced.at(-1)!)).toMatchObject({
    hub: 'hub',
    environmentId: api.a.environmentId,
    filters: [{ name: 'a' }, { person: 'x', outcome: 'refused' }],
  });
  one.answer.destroy();
  other.answer.destroy();
  await vi.waitFor(() => expect(JSON.parse(announced.at(-1)!).filters).toEqual([]), WAIT);
});

test('each reader gets the lines that match its own filters', async () => {
  const everything = await openTail();
  const byPerson = await openTail('?person=ADA@example.com');
  const byName = await openTail('?name=b');
  const byOutcome = await openTail('?outcome=refused');
  const bySource = await openTail('?source=pipelines');
  const byWebhook = await openTail('?webhook_id=2');
  const lines = [
    line('a'),
    line('b', { people: [] }),
    line('c', { kind: 'refused', outcome: 'refused', people: [{ id: '1' }] }),
  ];
  tell(api.a.environmentId, lines);
  tell(api.a.environmentId, [line('end', { people: [{ id: 'ada@example.com' }] })]);
  await vi.waitFor(() => expect(everything.events('received')).toHaveLength(3), WAIT);
  await vi.waitFor(() => expect(byPerson.events('received')).toHaveLength(2), WAIT);
  expect(byPerson.events('received').map((each) => each['name'])).toEqual(['a', 'end']);
  await vi.waitFor(() => expect(byName.events('received')).toHaveLength(1), WAIT);
  expect(byName.events('received').map((each) => each['name'])).toEqual(['b']);
  await vi.waitFor(() => expect(byOutcome.events('refused')).toHaveLength(1), WAIT);
  expect(byOutcome.events('received')).toEqual([]);
  tell(api.a.environmentId, [
    line('track', { details: { source: 'track.event' } }),
    line('pipelines', { details: { source: 'pipelines.track' } }),
    line('reported', { kind: 'reported', details: { webhook_id: 2 } }),
    line('other', { kind: 'reported', details: { webhook_id: 22 } }),
  ]);
  await vi.waitFor(() => expect(byWebhook.events('reported')).toHaveLength(1), WAIT);
  expect(byWebhook.events('reported')[0]?.['name']).toBe('reported');
  await vi.waitFor(() => expect(bySource.events('received')).toHaveLength(1), WAIT);
  expect(bySource.events('received')[0]?.['name']).toBe('pipelines');
});

// Security.
test('a reader sees only the lines of its own workspace', async () => {
  const [ofA, ofB] = [await openTail(), await openTail('', { key: api.b.key })];
  tell(api.a.environmentId, [line('of a')]);
  tell(api.b.environmentId, [line('of b')]);
  await vi.waitFor(() => expect(ofA.events('received')).toHaveLength(1), WAIT);
  await vi.waitFor(() => expect(ofB.events('received')).toHaveLength(1), WAIT);
  expect(ofA.read()).not.toContain('of b');
  expect(ofB.read()).not.toContain('of a');
});

test('a tail without a valid key is 401, and a tail with an unknown outcome is 400', async () => {
  expectProblem(await api.call('GET', '/v1/stream', { key: 'none' }), 401, 'unauthorized');
  expectProblem(await api.call('GET', '/v1/stream?outcome=lost'), 400, 'invalid_request');
});

test('a reader gets the count of lost lines before the next line', async () => {
  const reader = await openTail('?name=wanted');
  tell(api.a.environmentId, [line('other')], 5);
  tell(api.a.environmentId, [line('wanted')], 2);
  await vi.waitFor(() => expect(reader.events('received')).toHaveLength(1), WAIT);
  expect(reader.events('dropped')).toEqual([{ count: 5 }, { count: 2 }]);
});

test('a reader that reconnects with Last-Event-ID gets a dropped event without a count', async () => {
  const reader = await openTail('', { headers: { 'last-event-id': 'x-1' } });
  await vi.waitFor(() => expect(reader.events('dropped')).toEqual([{ count: null }]), WAIT);
});

test(
  'a slow reader loses lines and gets their count, while memory stays bounded',
  async () => {
    // A busy machine takes more than the minute for which a reader may accept no data.
    stoppedAtMs = Date.now();
    onTestFinished(() => void (stoppedAtMs = undefined));
    const slow = await openTail('', { isSlow: true });
    const name = 'x'.repeat(150);
    const before = process.memoryUsage().arrayBuffers;
    let told = 0;
    // 200 MB: more than any socket's buffers.
    for (let round = 0; round < 2_000; round++) {
      tell(
        api.a.environmentId,
        Array.from({ length: 400 }, () => line(name)),
      );
      told += 400;
      if (round % 10 === 0) await new Promise((resolve) => setImmediate(resolve));
    }
    expect(process.memoryUsage().arrayBuffers - before).toBeLessThan(64 * 2 ** 20);
    slow.readNow();
    let lastCount = 0;
    const ended = async (): Promise<void> => {
      tell(api.a.environmentId, [line('last')]);
      lastCount += 1;
      expect(slow.read()).toContain('"name":"last"');
    };
    await vi.waitFor(ended, WAIT);
    const dropped = slow.events('dropped').reduce((sum, { count }) => sum + Number(count), 0);
    const received = slow.events('received').filter((each) => each['name'] === name).length;
    expect(dropped).toBeGreaterThan(100_000);
    // Every line was either received or counted; of the last ones some may be.
    expect(received + dropped).toBeGreaterThanOrEqual(told);
    expect(received + dropped).toBeLessThanOrEqual(told + lastCount);
  },
  MANY_LINES_TIMEOUT_MS,
);

test('a reader that vanishes is forgotten at once', async () => {
  const reader = await openTail();
  expect(hub.readerCount(api.a.environmentId)).toBe(1);
  reader.answer.socket.destroy();
  await vi.waitFor(expectNoReaders, WAIT);
  expect(listeners.has(lineTopic(api.a.environmentId))).toBe(false);
});

test('a workspace leaves a share of the tails and the part for newcomers, and is refused with Retry-After', async () => {
  for (let n = 0; n < 50; n++) expect((await openTail()).answer.statusCode).toBe(200);
  const { answer } = await openTail();
  expect(answer.statusCode).toBe(503);
  expect(answer.headers['retry-after']).toBe('1');
  for (let n = 0; n < 20; n++)
    expect((await openTail('', { key: api.b.key })).answer.statusCode).toBe(200);
  expect((await openTail('', { key: api.b.key })).answer.statusCode).toBe(503);
});

test('the only workspace of an installation may have all tails', async () => {
  const others = sql`environment_id <> ${api.a.environmentId}`;
  await sql`update environments set deleted_at = now() where ${others}`.execute(api.database);
  try {
    for (let n = 0; n < 80; n++) expect((await openTail()).answer.statusCode).toBe(200);
    expect((await openTail()).answer.statusCode).toBe(503);
  } finally {
    await sql`update environments set deleted_at = null where ${others}`.execute(api.database);
  }
});

test('while the channel to the other processes is away, a tail is refused and leaves no reader behind', async () => {
  isAway = true;
  try {
    expect((await openTail()).answer.statusCode).toBe(503);
    expect(hub.readerCount(api.a.environmentId)).toBe(0);
  } finally {
    isAway = false;
  }
});

// Security: a tail's lines are as private as the answers to any other call of the key.
test('a silent tail has comments, and ends within a second once its key is revoked', async () => {
  await insertKey(api.database, api.a.environmentId, 'app', 'short_lived');
  vi.useFakeTimers({ toFake: ['setInterval'] });
  try {
    const reader = await openTail('', { key: 'short_lived' });
    await vi.advanceTimersByTimeAsync(15_000);
    await vi.waitFor(() => expect(reader.read()).toContain(': here\n\n'), WAIT);
    await revoke('short_lived');
    await vi.advanceTimersByTimeAsync(1_000);
    await vi.waitFor(() => expect(reader.isEnded).toBe(true), WAIT);
  } finally {
    vi.useRealTimers();
  }
});

test('a reader that accepts no data for a minute is cut, and not before', async () => {
  vi.useFakeTimers({ toFake: ['setInterval'] });
  stoppedAtMs = Date.now();
  try {
    await openTail('', { isSlow: true });
    await fillSockets();
    skewMs = 50_000;
    await vi.advanceTimersByTimeAsync(15_000);
    expect(hub.readerCount(api.a.environmentId)).toBe(1);
    // Well above the minute, for the sockets may have taken a last part just now.
    skewMs = 200_000;
    await vi.advanceTimersByTimeAsync(15_000);
    await vi.waitFor(expectNoReaders, WAIT);
  } finally {
    skewMs = 0;
    stoppedAtMs = undefined;
    vi.useRealTimers();
  }
});

// Security: whose key is revoked must not keep the places of those whose key is not.
test('a reader that accepts no more data is cut, even if its key was revoked', async () => {
  await insertKey(api.database, api.a.environmentId, 'app', 'stuck_and_revoked');
  const ours = new Promise<ServerResponse>((resolve) => {
    api.app.server.once('request', (_request, response: ServerResponse) => resolve(response));
  });
  vi.useFakeTimers({ toFake: ['setInterval'] });
  try {
    await openTail('', { key: 'stuck_and_revoked', isSlow: true });
    await fillSockets();
    await revoke('stuck_and_revoked');
    const response = await ours;
    // Until a look at the key has ended the tail.
    await vi.waitFor(async () => {
      await vi.advanceTimersByTimeAsync(1_000);
      expect(response.writableEnded).toBe(true);
    }, WAIT);
    expect(hub.readerCount(api.a.environmentId)).toBe(1);
    skewMs = 200_000;
    await vi.advanceTimersByTimeAsync(15_000);
    await vi.waitFor(expectNoReaders, WAIT);
  } finally {
    skewMs = 0;
    vi.useRealTimers();
  }
});

test('a stop of the process ends its tails', async () => {
  const own = await startApi({
    openTail: async () => ({ close: () => {} }),
    tailDurationMsMax: 600_000,
  });
  const url = await own.app.listen({ port: 0, host: '127.0.0.1' });
  const answer = await fetch(`${url}/v1/stream`, {
    headers: { authorization: `Bearer ${own.a.key}` },
  });
  const text = answer.text();
  await own.close();
  expect(await text).toBe(': listening\n\n');
});
