import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { ShardEnvelope } from '@sluice/platform/queue';
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { EnvelopeCommitter } from '../src/commit-envelopes.ts';
import { openSpill, type Spill } from '../src/spill.ts';

type Mode = 'up' | 'refusing' | 'hanging';

const flush = (id: string): ShardEnvelope[] => [{ shard: 0, envelope: { id, operations: [] } }];

/** As long as a broker takes at least. */
const turn = () => new Promise<void>((resolve) => setImmediate(resolve));

/** A broker that can be away in each way, and what it was given, in order. */
function createBroker() {
  const broker = {
    mode: 'up' as Mode,
    /** False as on a Redis Cluster. */
    isAtomicAcrossShards: true,
    added: [] as string[],
    attempts: [] as string[],
    /** Of these, those that had to be added together. */
    atomic: [] as string[],
    /** Refused by content, whatever the mode. */
    poison: undefined as string | undefined,
    /** What it was given while it hung, and does when it wakes. */
    late: [] as (() => void)[],
    onAdd: () => {},
    addEnvelopes(envelopes: readonly ShardEnvelope[], isAtomic: boolean): Promise<void> {
      const ids = envelopes.map(({ envelope }) => envelope.id);
      if (isAtomic) broker.atomic.push(ids.join());
      broker.attempts.push(ids.join());
      const add = () => {
        if (broker.poison !== undefined && ids.includes(broker.poison)) throw new Error('refused');
        broker.added.push(...ids);
        broker.onAdd();
      };
      if (broker.mode === 'refusing') return Promise.reject(new Error('OOM'));
      if (broker.mode === 'up') return turn().then(add);
      return new Promise((resolve) => broker.late.push(() => (add(), resolve())));
    },
    durability: () =>
      broker.mode === 'up'
        ? Promise.resolve({ isSafe: true, description: '' })
        : Promise.reject(new Error('away')),
    wake() {
      broker.mode = 'up';
      for (const add of broker.late.splice(0)) add();
    },
  };
  return broker;
}

let directory: string;
let spill: Spill;
let broker: ReturnType<typeof createBroker>;
let time = 1_000_000;
const committers: EnvelopeCommitter[] = [];

function start(sizeBytesMax = 1_000_000, deadlineMs = 20): EnvelopeCommitter {
  spill = openSpill({ directory, name: 'test', sizeBytesMax });
  const committer = new EnvelopeCommitter({
    producer: broker,
    spill,
    now: () => time,
    deadlineMs,
    pause: turn,
    logger: { info: () => {}, warn: () => {} },
  });
  committers.push(committer);
  return committer;
}

const unique = (ids: readonly string[]): string[] => [...new Set(ids)];
const WAIT = { timeout: 10_000, interval: 1 };
const untilEmpty = () => vi.waitFor(() => expect(spill.isEmpty).toBe(true), WAIT);

beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), 'sluice-test-commit-'));
  broker = createBroker();
});
afterEach(async () => {
  for (const committer of committers.splice(0)) await committer.stop();
  rmSync(directory, { recursive: true, force: true });
});

describe('a flush', () => {
  test('goes to the broker alone while that confirms', async () => {
    const committer = start();
    expect(await committer.commit(flush('a'), false, time)).toBe('broker');
    expect(broker.added).toEqual(['a']);
    expect(spill.isEmpty).toBe(true);
  });

  test.each(['refusing', 'hanging'] as const)(
    'is kept, and is first when a broker that was %s is back; then calls go straight again',
    async (mode) => {
      const committer = start();
      broker.mode = mode;
      // The broker's client may still hold the bytes of the first.
      expect(await committer.commit(flush('a'), false, time)).toBe('spill');
      expect(await committer.commit(flush('b'), false, time)).toBe('spill');
      await committer.commit(flush('c'), false, time);
      expect(broker.added).toEqual([]);
      expect(spill.envelopeCount).toBe(3);
      // Only small questions are asked meanwhile.
      expect(broker.attempts).toEqual(['a']);
      broker.wake();
      await untilEmpty();
      await committer.commit(flush('d'), false, time);
      expect(unique(broker.added)).toEqual(['a', 'b', 'c', 'd']);
      expect(broker.attempts.at(-1)).toBe('d');
    },
  );

  test('has what its oldest call has left of the deadline, not the whole of it', async () => {
    const deadlineMs = 60_000;
    const committer = start(undefined, deadlineMs);
    broker.mode = 'hanging';
    await committer.commit(flush('a'), false, time - deadlineMs + 1);
    expect(broker.attempts).toEqual(['a']);
    expect(spill.envelopeCount).toBe(1);
  });

  test('waits no longer than the deadline where the clock went back since its calls came', async () => {
    const committer = start();
    broker.mode = 'hanging';
    expect(await committer.commit(flush('a'), false, time + 3_600_000)).toBe('spill');
  }, 5_000);

  test('however long its calls have waited, a broker that answers is asked and takes it', async () => {
    const committer = start();
    broker.mode = 'hanging';
    const committed = committer.commit(flush('a'), false, time - 3_600_000);
    setTimeout(() => broker.wake(), 10);
    await committed;
    expect(spill.isEmpty).toBe(true);
    expect(broker.added).toEqual(['a']);
  });

  test('one of unknown outcome reaches the broker before any later one, whenever it wakes', async () => {
    const committer = start();
    broker.mode = 'hanging';
    await committer.commit(flush('a'), false, time);
    const asleep = broker.late.splice(0);
    broker.mode = 'up';
    await committer.commit(flush('b'), false, time);
    await untilEmpty();
    // The first try is done at last, behind everything: a second copy of an id that is there.
    for (const add of asleep) add();
    expect(unique(broker.added)).toEqual(['a', 'b']);
  });

  test('of several shards, where these have no common transaction, outlives a process that dies in between', async () => {
    const first = start();
    broker.isAtomicAcrossShards = false;
    await first.commit(flush('a'), true, time);
    expect(spill.isEmpty).toBe(true);
    const adding = first.commit(flush('b'), true, time);
    // Some shards may have it now. What the next start finds:
    expect(spill.envelopeCount).toBe(1);
    await adding;
    expect(spill.isEmpty).toBe(true);
    expect(broker.added).toEqual(['a', 'b']);
  });

  test('of several shards is added again where only some of them confirmed it', async () => {
    const committer = start();
    broker.isAtomicAcrossShards = false;
    broker.mode = 'refusing';
    await committer.commit(flush('a'), true, time);
    expect(spill.envelopeCount).toBe(1);
    broker.wake();
    await untilEmpty();
    expect(broker.added).toEqual(['a']);
  });

  test('that the broker refuses by itself holds back the later ones, and is never dropped', async () => {
    const committer = start();
    broker.poison = 'a';
    for (const id of ['a', 'b', 'c']) await committer.commit(flush(id), false, time);
    await vi.waitFor(
      () => expect(broker.attempts.filter((ids) => ids === 'a').length).toBeGreaterThan(3),
      WAIT,
    );
    expect(broker.added).toEqual([]);
    const movedAtMs = committer.lastMovedAtMs;
    time += 60_000;
    expect(committer.lastMovedAtMs).toBe(movedAtMs);
    broker.poison = undefined;
    await untilEmpty();
    expect(broker.added).toEqual(['a', 'b', 'c']);
    expect(committer.lastMovedAtMs).toBe(time);
  });

  test('is refused when there is no room, and taken again when there is', async () => {
    const committer = start(100);
    broker.mode = 'refusing';
    await committer.commit(flush('a'), false, time);
    await expect(committer.commit(flush('b'), false, time)).rejects.toMatchObject({
      code: 'BROKER_UNAVAILABLE',
    });
    expect(spill.envelopeCount).toBe(1);
    broker.mode = 'up';
    await untilEmpty();
    await committer.commit(flush('c'), false, time);
    expect(broker.added).toEqual(['a', 'c']);
  });

  test('is refused when the disk takes none, and the broker is asked again at the next', async () => {
    const committer = start();
    broker.mode = 'refusing';
    vi.spyOn(spill, 'append').mockImplementation(() => {
      throw new Error('database or disk is full');
    });
    await expect(committer.commit(flush('a'), false, time)).rejects.toMatchObject({
      code: 'BROKER_UNAVAILABLE',
    });
    broker.mode = 'up';
    await committer.commit(flush('b'), false, time);
    expect(broker.added).toEqual(['b']);
  });
});

describe('the drain', () => {
  test('ends while calls keep coming, in order', async () => {
    const committer = start();
    broker.mode = 'refusing';
    let next = 0;
    const sent: string[] = [];
    const send = async () => {
      const id = `flush-${next++}`;
      sent.push(id);
      await committer.commit(flush(id), false, time);
    };
    for (let n = 0; n < 100; n++) await send();
    broker.mode = 'up';
    // One in each turn of the event loop, as a batcher under load does.
    while (!spill.isEmpty) {
      await send();
      await turn();
      expect(next).toBeLessThan(1_000);
    }
    await send();
    expect(broker.added).toEqual(sent);
    expect(broker.attempts.at(-1)).toBe(sent.at(-1));
  });

  test('that is cut between the broker’s confirmation and the delete sends the same ids again', async () => {
    const committer = start();
    broker.mode = 'refusing';
    for (const id of ['a', 'b', 'c']) await committer.commit(flush(id), false, time);
    vi.spyOn(spill, 'deleteOldest').mockImplementation(() => {
      // The process ends here.
      broker.mode = 'refusing';
      throw new Error('cut');
    });
    broker.mode = 'up';
    await vi.waitFor(() => expect(broker.added).toEqual(['a']), WAIT);
    await committers.pop()?.stop();

    broker.mode = 'up';
    const restarted = start();
    await restarted.commit(flush('d'), false, time);
    await untilEmpty();
    expect(broker.added[1]).toBe('a');
    expect(unique(broker.added)).toEqual(['a', 'b', 'c', 'd']);
  });

  test('begins with what an earlier process left, before anything new', async () => {
    const committer = start();
    broker.mode = 'refusing';
    await committer.commit(flush('a'), false, time);
    await committers.pop()?.stop();
    const restarted = start();
    await restarted.commit(flush('b'), false, time);
    broker.mode = 'up';
    await untilEmpty();
    expect(unique(broker.added)).toEqual(['a', 'b']);
  });

  test('adds several flushes together, and one by itself as it came', async () => {
    const committer = start();
    broker.mode = 'refusing';
    await committer.commit(flush('a'), true, time);
    for (const id of ['b', 'c']) await committer.commit(flush(id), false, time);
    broker.atomic = [];
    broker.mode = 'up';
    await untilEmpty();
    // Of two that touch one shard the later must not get through alone.
    expect(broker.atomic).toEqual(['a', 'b,c']);
  });

  test('is left to the next start where a stop would take too long', async () => {
    const committer = start();
    broker.mode = 'refusing';
    for (const id of ['a', 'b', 'c', 'd']) await committer.commit(flush(id), false, time);
    broker.onAdd = () => (time += 5_000);
    broker.mode = 'up';
    await committer.stop();
    committers.pop();
    expect(broker.added).toEqual(['a']);
    broker.onAdd = () => {};
    start();
    await untilEmpty();
    expect(broker.added).toEqual(['a', 'b', 'c', 'd']);
  });

  test('a stop moves what can be moved, and leaves nothing when the broker is there', async () => {
    const committer = start();
    broker.mode = 'refusing';
    for (const id of ['a', 'b', 'c', 'd']) await committer.commit(flush(id), false, time);
    broker.mode = 'up';
    await committer.stop();
    committers.pop();
    expect(broker.added).toEqual(['a', 'b', 'c', 'd']);
    start();
    expect(spill.isEmpty).toBe(true);
  });
});

describe('Retry-After', () => {
  test('grows with the outage, within a minute', async () => {
    const committer = start();
    expect(committer.retryAfterSeconds()).toBe(1);
    broker.mode = 'refusing';
    await committer.commit(flush('a'), false, time);
    expect(committer.retryAfterSeconds()).toBe(1);
    time += 20_000;
    expect(committer.retryAfterSeconds()).toBe(10);
    time += 3_600_000;
    expect(committer.retryAfterSeconds()).toBe(60);
    broker.mode = 'up';
    await untilEmpty();
    expect(committer.retryAfterSeconds()).toBe(1);
  });

  test('is the time until a tenth of the spill is free while it drains', async () => {
    const sizeBytes = Buffer.byteLength(JSON.stringify(flush('flush-100')));
    const committer = start(100 * sizeBytes);
    broker.mode = 'refusing';
    for (let n = 100; n < 200; n++) await committer.commit(flush(`flush-${n}`), false, time);
    const seen: number[] = [];
    broker.onAdd = () => {
      // Each step takes two seconds: after the first, one of a hundred left; nine more until a tenth is free.
      seen.push(committer.retryAfterSeconds());
      time += 2_000;
    };
    broker.mode = 'up';
    await untilEmpty();
    expect(seen[1]).toBe(18);
    expect(seen.at(-1)).toBe(1);
  });
});
