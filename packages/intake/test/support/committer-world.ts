/**
 * The committer over a real disk buffer and an unreliable broker.
 *
 * The broker can be away in each way.
 */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { ShardCommitBatch } from '@sluice/platform/queue/queue';
import type { AddOutcome } from '@sluice/platform/queue/hold-back';
import { readFlush, type StagedDraft } from '@sluice/platform/queue/staged-flushes';
import { vi } from 'vitest';
import { BatchCommitter } from '../../src/commit/batch-committer.ts';
import type { DiskBuffer } from '../../src/commit/disk-buffer.ts';
import { openDiskBuffer } from '../../src/commit/open-disk-buffer.ts';

type Mode = 'up' | 'refusing' | 'hanging';

/** Whose the requests of a flush are. */
export const OWNERS: ReadonlyMap<number, number> = new Map([[1, 100]]);

export const flush = (id: string): ShardCommitBatch[] => [
  { shard: 0, envelope: { id, operations: [] } },
];

/** As long as a broker takes at least. */
export const turn = () => new Promise<void>((resolve) => setImmediate(resolve));

/** A broker that can be away in each way, and the flushes that it got, in order. */
function createBroker() {
  const broker = {
    mode: 'up' as Mode,
    /** False as on a Redis Cluster. */
    isAtomicAcrossShards: true,
    added: [] as string[],
    /** The flushes that it got at a time. */
    attempts: [] as string[],
    /** Its answers to the next new flushes, which are not added then. */
    heldBack: [] as ('held' | 'ending')[],
    /** Staged flushes, in order. */
    staged: [] as StagedDraft[],
    /** Refused by content, in any mode. */
    poison: undefined as string | undefined,
    /** Its work while it hung, done when it wakes. */
    late: [] as (() => void)[],
    onAdd: () => {},
    /** Staged flushes are moved at once. */
    stage: {
      async put(flushes: readonly StagedDraft[]): Promise<void> {
        await broker.addFlush(flushes.flatMap(({ text }) => readFlush(text)));
        broker.staged.push(...flushes);
      },
    },
    addFlush(commitBatches: readonly ShardCommitBatch[]): Promise<AddOutcome> {
      const heldBack = broker.heldBack.shift();
      if (heldBack !== undefined) return turn().then(() => heldBack);
      const ids = commitBatches.map(({ envelope: commitBatch }) => commitBatch.id);
      broker.attempts.push(ids.join());
      const add = () => {
        if (broker.poison !== undefined && ids.includes(broker.poison)) throw new Error('refused');
        broker.added.push(...ids);
        broker.onAdd();
      };
      if (broker.mode === 'refusing') return Promise.reject(new Error('OOM'));
      if (broker.mode === 'up')
        return turn()
          .then(add)
          .then(() => 'added');
      return new Promise((resolve) => broker.late.push(() => (add(), resolve('added'))));
    },
    durability: () =>
      broker.mode === 'up'
        ? Promise.resolve({ isSafe: true, isSaidUnsafe: false, description: '' })
        : Promise.reject(new Error('away')),
    durabilityRefusal: () => undefined,
    wake() {
      broker.mode = 'up';
      for (const add of broker.late.splice(0)) add();
    },
  };
  return broker;
}

export const unique = (ids: readonly string[]): string[] => [...new Set(ids)];
export const WAIT = { timeout: 30_000, interval: 1 };

export class CommitterWorld {
  readonly broker = createBroker();
  /** Of the committer that was started last. */
  diskBuffer!: DiskBuffer;
  nowMs = 1_000_000;
  /** Time by which the clock of the machine was set; only the times of flushes use that clock. */
  setByMs = 0;
  /** By the broker's clock, which is an hour ahead. */
  readonly lease = {
    /** Resolves when a flush may be kept. */
    beforeKeeping: (): Promise<void> => Promise.resolve(),
    kept: () => {},
    leaveUncounted: () => {},
    staged: () => {},
    brokerNow: () => this.nowMs + 3_600_000,
    untilPassed: () => Promise.resolve(),
    reported: (): Promise<void> => Promise.resolve(),
    isLate: false,
  };
  /** Messages of the log. */
  readonly logged: string[] = [];
  /** How long it waited each time. */
  readonly pauses: number[] = [];
  readonly #directory = mkdtempSync(join(tmpdir(), 'sluice-test-commit-'));
  readonly #committers: BatchCommitter[] = [];
  readonly #diskBuffers: DiskBuffer[] = [];

  /**
   * As a process that starts with the files of earlier ones.
   *
   * @param deadlineMs - a broker that is up answers sooner, on a busy machine too.
   */
  start(sizeBytesMax = 1_000_000, deadlineMs = 500): BatchCommitter {
    this.diskBuffer = openDiskBuffer({
      directory: this.#directory,
      name: 'test',
      sizeBytesMax,
      sharePercent: 25,
      isAlone: () => true,
    });
    const committer = new BatchCommitter({
      producer: this.broker,
      diskBuffer: this.diskBuffer,
      lease: this.lease,
      now: () => this.nowMs + this.setByMs,
      monotonicNow: () => this.nowMs,
      deadlineMs,
      pause: (durationMs) => {
        this.pauses.push(durationMs);
        return turn();
      },
      logger: { info: this.#log, warn: this.#log },
    });
    this.#committers.push(committer);
    this.#diskBuffers.push(this.diskBuffer);
    return committer;
  }

  readonly #log = (_: unknown, message?: string): void => void this.logged.push(String(message));

  /** The one that was started last. */
  async stop(): Promise<void> {
    const committer = this.#committers.pop();
    if (!committer) return;
    await committer.stop();
    this.#diskBuffers.pop()?.close();
  }

  async untilEmpty(): Promise<void> {
    await vi.waitUntil(() => this.diskBuffer.isEmpty, WAIT);
  }

  async close(): Promise<void> {
    while (this.#committers.length > 0) await this.stop();
    rmSync(this.#directory, { recursive: true, force: true });
  }
}
