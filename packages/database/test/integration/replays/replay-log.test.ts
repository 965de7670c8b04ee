/** The place in a webhook's log at which a replay begins. */
import fc from 'fast-check';
import { CompiledQuery, sql } from 'kysely';
import { beforeAll, expect, test } from 'vitest';
import type { Database } from '../../../src/connection/connection.ts';
import { countMatching, findSequenceBefore } from '../../../src/replays/replay-log.ts';
import { statementsSentBy } from '../../../src/testing/statements-sent.ts';
import { createTestDatabase } from '../../../src/testing/testing.ts';

const BEGIN_SECONDS = Date.parse('2026-03-01T00:00:00Z') / 1_000;
/** As much earlier a transaction may have begun than one that was numbered before it. */
const MARGIN_SECONDS = 600;

let database: Database;
let webhookCount = 0;
beforeAll(async () => {
  ({ database } = await createTestDatabase());
});

/** A log with these gaps between its numbers and seconds between its times. */
async function fillLog(gaps: readonly { readonly numbers: number; readonly seconds: number }[]) {
  const lane = { environmentId: 1, webhookId: ++webhookCount };
  let [sequence, seconds] = [0, 0];
  const rows = gaps.map((gap) => {
    sequence += gap.numbers;
    seconds += gap.seconds;
    return { sequence, seconds };
  });
  await sql`
    insert into delivery_log (environment_id, webhook_id, sequence, event_id, event_type, occurred_at, appended_at, origin, body)
    select ${lane.environmentId}, ${lane.webhookId}, sequence, 'event', 'email_sent', now(), to_timestamp(${BEGIN_SECONDS} + seconds), 'event', '{}'
      from unnest(${rows.map((row) => row.sequence)}::bigint[], ${rows.map((row) => row.seconds)}::int[]) as log (sequence, seconds)`.execute(
    database,
  );
  return { lane, rows };
}

test('a replay from a time on begins behind the last row that is older, however the numbers lie', async () => {
  const gap = fc.record({
    numbers: fc.integer({ min: 1, max: 5 }),
    seconds: fc.integer({ min: 0, max: 400 }),
  });
  await fc.assert(
    fc.asyncProperty(
      fc.array(gap, { maxLength: 40 }),
      fc.integer({ min: -700, max: 17_000 }),
      fc.nat(5),
      async (gaps, since, beyond) => {
        const { lane, rows } = await fillLog(gaps);
        const through = (rows.at(-1)?.sequence ?? 0) + beyond;
        const older = rows.filter((row) => row.seconds < since - MARGIN_SECONDS);
        expect(await findSequenceBefore(database, lane, BEGIN_SECONDS + since, through)).toBe(
          older.at(-1)?.sequence ?? 0,
        );
      },
    ),
    { numRuns: 100 },
  );
});

test('a replay for a person leaves out people whose names are equal only by Unicode rules', async () => {
  const lane = { environmentId: 1, webhookId: ++webhookCount };
  const people = [
    { email: 'adak@example.com', id: 'k' },
    { email: 'ada\u212a@example.com', id: '\u212a' },
    { email: 'AdaK@Example.com', id: 'K' },
    { email: 'ada\u0130@example.com', id: 'u\u0308' },
  ];
  for (const [index, identifiers] of people.entries())
    await sql`
      insert into delivery_log (environment_id, webhook_id, sequence, event_id, event_type, occurred_at, appended_at, origin, body)
      values (${lane.environmentId}, ${lane.webhookId}, ${index + 1}, 'event', 'email_sent', now(), now(), 'event', ${JSON.stringify({ data: { identifiers } })})`.execute(
      database,
    );
  const countOf = async (kind: 'id' | 'email', value: string) => {
    const range = { afterSequence: 0, throughSequence: 10 };
    const person = { kind, value };
    return (await countMatching(database, lane, { person }, range, 100)).count;
  };
  expect(await countOf('email', 'ADAK@example.com')).toBe(2);
  expect(await countOf('email', 'ada\u212a@example.com')).toBe(1);
  expect(await countOf('email', 'ada\u0130@EXAMPLE.com')).toBe(1);
  expect(await countOf('id', 'k')).toBe(1);
  expect(await countOf('id', '\u212a')).toBe(1);
});

test('however long the log is, one statement finds it, by index', async () => {
  const { lane } = await fillLog(Array.from({ length: 5_000 }, () => ({ numbers: 1, seconds: 1 })));
  await sql`analyze delivery_log`.execute(database);
  const find = () => findSequenceBefore(database, lane, BEGIN_SECONDS + 3_600, 2 ** 50);
  const sent = await statementsSentBy(find);
  expect(sent).toHaveLength(1);
  expect(await find()).toBe(2_999);
  const { text, values } = sent[0]!;
  const { rows } = await database.executeQuery<{ 'QUERY PLAN': string }>(
    CompiledQuery.raw(`explain ${text}`, [...values]),
  );
  expect(rows.map((row) => row['QUERY PLAN']).join('\n')).not.toContain('Seq Scan on delivery_log');
});
