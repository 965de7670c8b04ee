/**
 * Compares what is in Postgres with what was acknowledged: every event is there exactly once, each person's events
 * were applied in the order in which their client sent them, and the last identify stands.
 */
import type { Database } from '@sluice/database/connection/connection';
import { DEMO } from '@sluice/database/demo/seed-demo';
import { sql } from 'kysely';
import type { SentPerson } from './load.ts';

interface StoredEvent {
  readonly eventId: string;
  readonly personName: string | null;
  readonly count: number;
  /** Of the commit batch that it was applied with: grows from one commit batch of a shard to the next. */
  readonly envelopeNumber: string | null;
}

const PROBLEMS_MAX = 10;

/** @returns what is wrong, a line each; empty where nothing is. */
export async function findLosses(
  database: Database,
  seed: number,
  people: readonly SentPerson[],
): Promise<string[]> {
  const prefix = `chaos-${seed}-%`;
  const { rows: events } = await sql<StoredEvent>`
    select events.event_id as "eventId", people.id as "personName", count(*)::int as count,
           min(event_ids.envelope_number) as "envelopeNumber"
      from events
      join people using (environment_id, person_id)
      left join event_ids using (environment_id, event_id)
     where events.environment_id = ${DEMO.environmentId} and people.id like ${prefix}
       and events.kind = 'event'
     group by 1, 2`.execute(database);
  const { rows: steps } = await sql<{ name: string; step: number }>`
    select id as name, (attributes ->> 'step')::int as step from people
     where environment_id = ${DEMO.environmentId} and id like ${prefix}`.execute(database);

  const stored = new Map(events.map((event) => [event.eventId, event]));
  const stepOf = new Map(steps.map(({ name, step }) => [name, step]));
  const problems: string[] = [];
  let sentCount = 0;
  for (const person of people) {
    sentCount += person.events.length;
    let last = 0n;
    for (const [place, { eventId, call }] of person.events.entries()) {
      const which = `event ${place} of ${person.name} (${eventId}; ${call})`;
      const found = stored.get(eventId);
      if (!found) {
        problems.push(`lost: ${which}`);
        continue;
      }
      if (found.count > 1) problems.push(`stored ${found.count} times: ${which}`);
      if (found.personName !== person.name)
        problems.push(`with another person (${found.personName}): ${which}`);
      const number = BigInt(found.envelopeNumber ?? -1);
      if (number < last) problems.push(`applied before the one sent before it: ${which}`);
      last = number;
    }
    const step = stepOf.get(person.name);
    if (step !== person.step)
      problems.push(`${person.name} stands at step ${step}, acknowledged was ${person.step}`);
  }
  if (problems.length === 0 && events.length !== sentCount)
    problems.push(`${events.length} events are stored, ${sentCount} were sent`);
  return problems.length <= PROBLEMS_MAX
    ? problems
    : [...problems.slice(0, PROBLEMS_MAX), `and ${problems.length - PROBLEMS_MAX} more`];
}

/** Commit batches applied so far, of all seeds: only grows, and by no more than was acknowledged. */
export async function countApplied(database: Database): Promise<number> {
  const { rows } = await sql<{ count: number }>`
    select count(*)::int as count from envelopes`.execute(database);
  return rows[0]?.count ?? 0;
}
