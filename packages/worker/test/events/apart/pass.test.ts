/**
 * Passes over a queue while workspaces wait.
 *
 * Parts of a workspace are applied in order and once. Workspaces go and come back, batches are added, other processes
 * remove batches, and processes begin anew.
 */
import { partIdOf, type CommitBatch } from '@sluice/domain/operations/envelope';
import { readPlaces } from '@sluice/domain/operations/flush-places';
import { track } from '@sluice/domain/testing/sample-operations';
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { Pass } from '../../../src/events/apart/pass.ts';
import {
  isComplete,
  partOf,
  planParts,
  tenantsOf,
} from '../../../src/events/apart/tenant-parts.ts';

const TENANTS = [1, 2, 3, 4];
/** Two batches fill a window. */
const OPERATIONS_EACH = 250;

const batchOf = (id: string, tenants: readonly number[]): CommitBatch => ({
  id,
  operations: tenants.flatMap((environmentId) =>
    Array.from({ length: OPERATIONS_EACH }, () => ({ ...track('id:a', 'seen'), environmentId })),
  ),
});

type Action =
  | { readonly kind: 'add'; readonly tenants: readonly number[] }
  | { readonly kind: 'away' | 'back'; readonly tenant: number }
  | { readonly kind: 'restart' | 'step' }
  /** Another process applies the parts of the first batches, and takes the complete ones out of the queue. */
  | { readonly kind: 'other'; readonly count: number };

const tenant = fc.constantFrom(...TENANTS);
const actions = fc.array(
  fc.oneof(
    {
      weight: 3,
      arbitrary: fc.record({
        kind: fc.constant('add' as const),
        tenants: fc.uniqueArray(tenant, { minLength: 1, maxLength: 3 }),
      }),
    },
    fc.record({ kind: fc.constantFrom('away' as const, 'back' as const), tenant }),
    {
      weight: 6,
      arbitrary: fc.record({ kind: fc.constant('step' as const) }),
    },
    fc.record({ kind: fc.constant('restart' as const) }),
    fc.record({ kind: fc.constant('other' as const), count: fc.nat(3) }),
  ),
  { maxLength: 60 },
) as fc.Arbitrary<Action[]>;

/** A queue, the claims, and a process that walks. */
class Model {
  readonly added: CommitBatch[] = [];
  queue: CommitBatch[] = [];
  readonly applied = new Set<string>();
  readonly order: string[] = [];
  readonly away = new Set<number>();
  backCount = 0;
  pass: Pass | undefined;

  apply(parts: readonly CommitBatch[]): void {
    for (const { id } of parts) {
      if (this.applied.has(id)) throw new Error(`${id} was applied twice`);
      this.applied.add(id);
      this.order.push(id);
    }
  }

  removeComplete(among: readonly CommitBatch[]): readonly CommitBatch[] {
    const complete = among.filter((batch) => isComplete(batch, this.applied));
    this.queue = this.queue.filter((batch) => !complete.includes(batch));
    return complete;
  }

  async step(): Promise<boolean> {
    const [head, ...behind] = this.queue;
    if (!head) return false;
    this.pass = Pass.next(this.pass, head, this.backCount);
    const window = await this.pass.readWindow({
      listFurther: async (count, skipped) => behind.slice(skipped, skipped + count),
      removeFurther: async () => undefined,
    });
    for (const [who, parts] of planParts(window, this.applied, this.pass.waiting)) {
      if (this.away.has(who)) this.pass.wait(who, parts);
      else this.apply(parts);
    }
    const complete = this.removeComplete(window);
    this.pass.moveBehind(window.filter((batch) => !complete.includes(batch)));
    return window.length > 0;
  }

  async run(action: Action): Promise<void> {
    if (action.kind === 'add') {
      const batch = batchOf(`b${this.added.length}`, action.tenants);
      this.added.push(batch);
      this.queue.push(batch);
    } else if (action.kind === 'away') this.away.add(action.tenant);
    else if (action.kind === 'back') {
      if (this.away.delete(action.tenant)) this.backCount++;
    } else if (action.kind === 'restart') this.pass = undefined;
    else if (action.kind === 'step') await this.step();
    else if (action.kind === 'other') {
      const first = this.queue.slice(0, action.count);
      for (const parts of planParts(first, this.applied, new Set()).values()) this.apply(parts);
      this.removeComplete(first);
    }
  }

  partsOf(who: number): string[] {
    return this.added.flatMap((batch) =>
      tenantsOf(batch).includes(who) ? [partIdOf(batch.id, who)] : [],
    );
  }

  appliedOf(who: number): string[] {
    return this.order.filter((id) => id.endsWith(`/${who}`));
  }
}

test('the parts of each workspace are applied in order and once, and of reachable workspaces all', async () => {
  await fc.assert(
    fc.asyncProperty(actions, async (list) => {
      const model = new Model();
      for (const action of list) {
        await model.run(action);
        for (const who of TENANTS)
          expect(model.appliedOf(who)).toEqual(
            model.partsOf(who).slice(0, model.appliedOf(who).length),
          );
      }
      // A window that is read anew may be short, and a change of the queue costs one step.
      for (let steps = 0; steps < 4 * model.added.length + 4; steps++) await model.step();
      for (const who of TENANTS)
        if (!model.away.has(who)) expect(model.appliedOf(who)).toEqual(model.partsOf(who));
      for (const who of TENANTS) await model.run({ kind: 'back', tenant: who });
      for (let steps = 0; steps < 4 * model.added.length + 4; steps++) await model.step();
      expect(model.queue).toEqual([]);
      expect(model.order).toHaveLength(model.added.flatMap(tenantsOf).length);
    }),
    { numRuns: 300 },
  );
});

test('a part has the operations of its workspace, at their places in the flush', () => {
  const [first, second] = batchOf('b', [1, 2]).operations as [
    CommitBatch['operations'][number],
    CommitBatch['operations'][number],
  ];
  const other = { ...track('id:b', 'other'), environmentId: 2 };
  const batch = { id: 'b', operations: [first, other, second], traceparent: 't' };
  expect(partOf(batch, 1)).toMatchObject({
    id: 'b/1',
    operations: [first, second],
    traceparent: 't',
  });
  expect(readPlaces(partOf(batch, 1).places ?? '')).toEqual([0, 2]);
  const ofFlush = { ...batch, flushId: 'f', places: '1(10)0' };
  expect(partOf(ofFlush, 2)).toMatchObject({ id: 'b/2', operations: [other], flushId: 'f' });
  expect(readPlaces(partOf(ofFlush, 2).places ?? '')).toEqual([readPlaces(ofFlush.places)[1]]);
});
