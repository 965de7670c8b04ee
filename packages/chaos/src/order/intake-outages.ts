/**
 * Outages of one intake: it loses its broker again and again while calls are sent, and keeps them on its disk.
 *
 * | kind | length | the other intake | its calls |
 * |---|---|---|---|
 * | `short` | up to 2 s | waits for it | take effect in the order of the answers |
 * | `long` | 7 to 9 s | goes on after 5 s | are late: later calls of the other intake are applied already |
 *
 * A Cluster and Sentinels publish addresses of their own, so the ways of the fleet do not lead to their servers.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import { pick, seededRandom, type Random } from '@sluice/domain/values/seeded-random';
import type { Broker } from '../loss/fault-plan.ts';
import type { Fleet } from '../loss/fleet-under-test.ts';
import { LATE_INTAKE } from './generate-calls.ts';

export const OUTAGE_KINDS = ['short', 'long'] as const;
export type OutageKind = (typeof OUTAGE_KINDS)[number];

export const mayLoseOneIntake = (broker: Broker): broker is 'redis' | 'postgres' =>
  broker === 'redis' || broker === 'postgres';

interface Span {
  readonly minMs: number;
  readonly maxMs: number;
}
const LENGTHS: Readonly<Record<OutageKind, Span>> = {
  short: { minMs: 200, maxMs: 2_000 },
  // The others wait for 5 s (`LOST_AFTER_MS` of the broker's stage).
  long: { minMs: 7_000, maxMs: 9_000 },
};
const PAUSES: Readonly<Record<OutageKind, Span>> = {
  short: { minMs: 100, maxMs: 1_500 },
  long: { minMs: 300, maxMs: 2_000 },
};
const RETURN_MS_MAX = 20_000;
const LOOK_INTERVAL_MS = 200;

export class IntakeOutages {
  readonly #fleet: Fleet;
  readonly #kind: OutageKind;
  readonly #random: Random;
  /** Lines of the log. */
  readonly #lateReturns = new Set<string>();
  #count = 0;

  /** @throws Error for a broker whose ways cannot be cut. */
  constructor(fleet: Fleet, kind: OutageKind, seed: number) {
    if (!mayLoseOneIntake(fleet.broker))
      throw new Error(`an intake alone cannot lose its ${fleet.broker}`);
    this.#fleet = fleet;
    this.#kind = kind;
    this.#random = seededRandom(seed);
  }

  get count(): number {
    return this.#count;
  }

  /** After how many outages the intake's calls were late. */
  get lateCount(): number {
    return this.#lateReturns.size;
  }

  /** For `RunOptions`. */
  readonly whileSending = async (sent: Promise<unknown>): Promise<void> => {
    let isSending = true;
    const end = () => (isSending = false);
    void sent.then(end, end);
    while (isSending) {
      await sleep(this.#timeOf(PAUSES[this.#kind]));
      if (isSending) await this.#suffer();
    }
  };

  async #suffer(): Promise<void> {
    const { broker } = this.#fleet;
    if (!mayLoseOneIntake(broker)) return;
    const intake = this.#kind === 'long' ? LATE_INTAKE : pick(this.#random, [0, 1] as const);
    this.#count++;
    await this.#fleet.suffer({
      of: 'way',
      kind: pick(this.#random, ['cut', 'hold'] as const),
      target: `intake-${intake} to ${broker}`,
      atMs: 0,
      durationMs: this.#timeOf(LENGTHS[this.#kind]),
    });
    await this.#untilBack(intake);
  }

  /** Until the intake's calls are handed over. Else the next outage would be the same one to the others. */
  async #untilBack(intake: 0 | 1): Promise<void> {
    const name = `intake-${intake}` as const;
    const endsAtMs = performance.now() + RETURN_MS_MAX;
    for (let isBack = false; !isBack && performance.now() < endsAtMs;) {
      await sleep(LOOK_INTERVAL_MS);
      const found = await this.#fleet.readiness();
      const body = found.find((each) => each.name === name)?.body;
      const spill = body?.['spill'] as { readonly envelopes: number } | undefined;
      isBack = body?.ready === true && spill?.envelopes === 0;
      for (const line of this.#fleet.lastLines(name))
        if (line.includes('other intake processes did not wait')) this.#lateReturns.add(line);
    }
  }

  #timeOf({ minMs, maxMs }: Span): number {
    return minMs + Math.floor(this.#random() * (maxMs - minMs));
  }
}
