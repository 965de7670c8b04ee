import type { TailLine } from '@sluice/domain/operations/tail';
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import {
  ANNOUNCEMENT_TOPIC,
  lineTopic,
  type TailAnnouncement,
  type TailMessage,
} from '../../src/tail/tail-messages.ts';
import { TailSource } from '../../src/tail/tail-source.ts';
import { MemoryChannel } from '../support/memory-channel.ts';

let channel: MemoryChannel;
let source: TailSource;
let warnings: string[];

beforeEach(() => {
  vi.useFakeTimers();
  channel = new MemoryChannel();
  warnings = [];
  source = new TailSource(channel, {
    warn: (_details: unknown, message?: unknown) => void warnings.push(String(message)),
  });
  source.start();
});
afterEach(() => {
  source.stop();
  vi.useRealTimers();
});

const announce = async (changes: Partial<TailAnnouncement> = {}): Promise<void> => {
  const said = { hub: 'a', environmentId: 7, filters: [{}], forMs: 6_000, ...changes };
  await channel.publish(ANNOUNCEMENT_TOPIC, JSON.stringify(said));
};

const line = (name: string): TailLine => ({
  kind: 'received',
  at_ms: 1,
  outcome: 'accepted',
  name,
  people: [{ id: '1' }],
  details: {},
});

const published = (environmentId = 7): TailMessage[] =>
  channel.published
    .filter(({ topic }) => topic === lineTopic(environmentId))
    .map(({ text }) => JSON.parse(text) as TailMessage);
const namesPublished = () => published().flatMap(({ lines }) => lines.map(({ name }) => name));
const droppedPublished = () => published().reduce((sum, { dropped }) => sum + dropped, 0);

test('lines of a workspace without readers are not published', async () => {
  await announce();
  expect(source.isTailed(7)).toBe(true);
  expect(source.isTailed(8)).toBe(false);
  source.publish(8, [line('a')]);
  await vi.advanceTimersByTimeAsync(1_000);
  expect(published(8)).toEqual([]);
});

test('lines of a moment go together, in order, those only that a filter wants', async () => {
  await announce({ filters: [{ name: 'a' }, { name: 'b' }] });
  source.publish(7, [line('a'), line('c'), line('b')]);
  source.publish(7, [line('a')]);
  await vi.advanceTimersByTimeAsync(100);
  expect(published()).toEqual([{ dropped: 0, lines: [line('a'), line('b'), line('a')] }]);
});

test('a reader that stops, or whose process vanishes, is forgotten', async () => {
  await announce();
  await announce({ hub: 'b' });
  await announce({ filters: [] });
  expect(source.isTailed(7)).toBe(true);
  await vi.advanceTimersByTimeAsync(5_999);
  expect(source.isTailed(7)).toBe(true);
  await vi.advanceTimersByTimeAsync(1);
  expect(source.isTailed(7)).toBe(false);
});

test('an announcement that is repeated in time stays valid', async () => {
  await announce();
  await vi.advanceTimersByTimeAsync(5_000);
  await announce();
  await vi.advanceTimersByTimeAsync(5_000);
  expect(source.isTailed(7)).toBe(true);
});

test('no message is larger than the channel takes, and a line that is by itself is counted as dropped', async () => {
  await announce();
  source.publish(7, [
    line('x'.repeat(2_000)),
    ...Array.from({ length: 20 }, () => line('ü'.repeat(60))),
  ]);
  await vi.advanceTimersByTimeAsync(100);
  for (const { text } of channel.published)
    expect(Buffer.byteLength(text)).toBeLessThanOrEqual(1_000);
  expect(namesPublished()).toHaveLength(20);
  expect(droppedPublished()).toBe(1);
});

test('lines beyond the rate limit are dropped, and every line is published or counted', async () => {
  await announce();
  for (let n = 0; n < 1_000; n++) source.publish(7, [line(`line ${n}`)]);
  await vi.advanceTimersByTimeAsync(100);
  expect(namesPublished().length).toBeLessThan(100);
  expect(namesPublished().length + droppedPublished()).toBe(1_000);
});

test('a channel that hangs keeps the gathered lines bounded, and every line is published or counted', async () => {
  await announce();
  let open = () => {};
  channel.gate = new Promise<void>((resolve) => (open = resolve));
  for (let second = 0; second < 6; second++) {
    for (let n = 0; n < 500; n++) source.publish(7, [line(`line ${n}`)]);
    await vi.advanceTimersByTimeAsync(500);
  }
  open();
  await vi.advanceTimersByTimeAsync(1_000);
  expect(namesPublished().length).toBeLessThan(150);
  expect(namesPublished().length + droppedPublished()).toBe(3_000);
});

test('lines that did not get away are counted once the channel is back', async () => {
  await announce();
  channel.gate = Promise.reject(new Error('away'));
  channel.gate.catch(() => undefined);
  source.publish(7, [line('a'), line('b')]);
  await vi.advanceTimersByTimeAsync(300);
  channel.gate = Promise.resolve();
  source.publish(7, [line('c')]);
  await vi.advanceTimersByTimeAsync(300);
  expect(namesPublished()).toEqual(['c']);
  expect(droppedPublished()).toBe(2);
});

/** Other messages on that channel must not end intake, at once or with the next call that it takes. */
test.each([
  '{',
  'null',
  '7',
  '[]',
  '{}',
  '{"hub":"b","environmentId":7,"forMs":6000}',
  '{"hub":"b","environmentId":7,"forMs":6000,"filters":[null]}',
  '{"hub":"b","environmentId":7,"forMs":6000,"filters":[{"name":7}]}',
  '{"hub":"b","environmentId":7,"forMs":"long","filters":[{}]}',
  '{"environmentId":7,"forMs":6000,"filters":[{}]}',
])('%s is no announcement: it is passed over with a warning', async (text) => {
  await channel.publish(ANNOUNCEMENT_TOPIC, text);
  expect(source.isTailed(7)).toBe(false);
  expect(warnings).toEqual([
    'an announcement of a live tail cannot be read and is ignored; all processes need the same version',
  ]);
  await announce();
  source.publish(7, [line('a')]);
  await vi.advanceTimersByTimeAsync(100);
  expect(namesPublished()).toEqual(['a']);
  expect(warnings).toHaveLength(1);
});
