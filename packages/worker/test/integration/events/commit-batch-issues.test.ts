/** Issues of a commit batch: values that Postgres refused, and issues that intake recorded. */
import type { Operation } from '@sluice/domain/operations/operation';
import { identify, NOW_MS, track } from '@sluice/domain/testing/sample-operations';
import { beforeAll, describe, expect, it } from 'vitest';
import {
  createCommitBatchWorld,
  inEnvironment,
  type CommitBatchWorld,
} from '../support/commit-batch-world.ts';

let world: CommitBatchWorld;

beforeAll(async () => {
  world = await createCommitBatchWorld();
});

describe('an operation that Postgres refuses', () => {
  it('is recorded and leaves its neighbours alone, in their order', async () => {
    const environmentId = world.newEnvironment();
    // Parsers replace this; other values that come through must not stop a shard either.
    const poison = track('id:1', 'poison', { data: { text: 'a\0b' } });
    const wide = track('id:1', 'wide', {
      eventId: 'w'
        .repeat(10_000)
        .replaceAll(/w/g, () => String.fromCharCode(33 + Math.random() * 90)),
    });
    const late = track('id:1', 'late', { occurredAtMs: 9e18 });
    const operations = inEnvironment(
      environmentId,
      ...Array.from({ length: 20 }, (_, index) => identify('id:1', { last: index })),
      poison,
      ...Array.from({ length: 20 }, (_, index) => track('id:1', `event ${index}`)),
      wide,
      late,
      identify('id:1', { after: true }),
    );
    expect(await world.process(operations)).toMatchObject({
      outcome: 'applied',
      counts: { parked: 3 },
    });
    expect(await world.eventNames(environmentId)).toHaveLength(20);
    expect(await world.rowsOf('people', environmentId, 'attributes')).toEqual([
      { attributes: { last: 19, after: true } },
    ]);
    const [issue] = await world.rowsOf(
      'ingestion_issues',
      environmentId,
      'code, source, count, message, sample',
    );
    expect(issue).toMatchObject({ code: 'invalid', source: 'event.track', count: '3' });
    expect(issue?.['sample']).toContain('"event.track"');
  });

  it('is recorded alone too', async () => {
    const environmentId = world.newEnvironment();
    const operations = inEnvironment(environmentId, track('id:1\0', 'poison'));
    expect(await world.process(operations)).toMatchObject({
      outcome: 'applied',
      counts: { parked: 1, events: 0 },
    });
    expect(await world.countOf('people', environmentId)).toBe(0);
    expect(await world.countOf('ingestion_issues', environmentId)).toBe(1);
  });
});

describe('the issues log', () => {
  it('counts by day, code, field and source, with the latest message, also for no workspace', async () => {
    const record = (
      field: string,
      message: string,
      receivedAtMs: number,
      count = 1,
    ): Operation => ({
      type: 'issue.record',
      environmentId: 0,
      receivedAtMs,
      source: 'pipelines.batch',
      count,
      issue: { code: 'required', field, message, sample: `sample of ${message}` },
    });
    await world.process([
      record('batch.3.event', 'first', NOW_MS),
      record('batch.14.event', 'second', NOW_MS + 1, 5),
      record('event', 'other', NOW_MS),
    ]);
    await world.process([record('batch.0.event', 'third', NOW_MS + 2)]);
    const rows = await world.rowsOf(
      'ingestion_issues',
      0,
      `field, count, message, sample, to_char(day, 'YYYY-MM-DD') as day, first_at, last_at`,
    );
    expect(rows.find((row) => row['field'] === 'batch.*.event')).toEqual({
      field: 'batch.*.event',
      count: '7',
      message: 'third',
      sample: 'sample of third',
      day: '2026-01-31',
      first_at: new Date(NOW_MS),
      last_at: new Date(NOW_MS + 2),
    });
    expect(rows).toHaveLength(2);
  });
});
