/**
 * Compares the rows in Postgres with the acknowledged calls.
 *
 * Every event is there exactly once, each person's events were applied in the order in which their client sent them,
 * and the last identify stands. A person who became part of another, or was deleted, is gone.
 */
import type { Database } from '@sluice/database/connection/connection';
import { DEMO } from '@sluice/database/demo/seed-demo';
import { sql } from 'kysely';
import type { SentPerson } from './loss-call.ts';

interface StoredEvent {
  readonly eventId: string;
  readonly personName: string | null;
  readonly count: number;
  /** Of the commit batch that it was applied with: grows from one commit batch of a shard to the next. */
  readonly envelopeNumber: string | null;
}

interface StoredPerson {
  readonly name: string;
  readonly email: string | null;
  readonly step: number;
}

const PROBLEMS_MAX = 10;

/** @returns the differences, a line each; empty without one. */
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
  const { rows: steps } = await sql<StoredPerson>`
    select id as name, email, (attributes ->> 'step')::int as step from people
     where environment_id = ${DEMO.environmentId} and id like ${prefix}`.execute(database);

  const storedEvents = new Map(events.map((event) => [event.eventId, event]));
  const personOf = new Map(steps.map((each) => [each.name, each]));
  const problems: string[] = [];
  let sentCount = 0;
  for (const person of people) {
    const { fate } = person;
    if (fate === 'deleted') {
      if (personOf.has(person.name) && !person.isSentAgain)
        problems.push(`${person.name} is there, and their deletion was acknowledged`);
      continue;
    }
    sentCount += person.events.length;
    const owner = fate === 'there' ? person.name : fate.mergedInto;
    let last = 0n;
    for (const [place, { eventId, call }] of person.events.entries()) {
      const which = `event ${place} of ${person.name} (${eventId}; ${call})`;
      const found = storedEvents.get(eventId);
      if (!found) {
        problems.push(`lost: ${which}`);
        continue;
      }
      if (found.count > 1) problems.push(`stored ${found.count} times: ${which}`);
      if (found.personName !== owner)
        problems.push(`with another person (${found.personName}): ${which}`);
      const number = BigInt(found.envelopeNumber ?? -1);
      if (number < last)
        problems.push(
          `applied (batch ${number}) before the one sent before it (${last}): ${which}`,
        );
      last = number;
    }
    const stored = personOf.get(person.name);
    if (fate === 'there') problems.push(...compareStored(person, stored));
    else if (stored && !person.isSentAgain)
      problems.push(`${person.name} is there, and became part of ${owner}`);
  }
  if (problems.length === 0 && events.length !== sentCount)
    problems.push(`${events.length} events are stored, ${sentCount} were sent`);
  return problems.length <= PROBLEMS_MAX
    ? problems
    : [...problems.slice(0, PROBLEMS_MAX), `and ${problems.length - PROBLEMS_MAX} more`];
}

function compareStored(
  { name, step, email }: SentPerson,
  stored: StoredPerson | undefined,
): string[] {
  const problems: string[] = [];
  if (stored?.step !== step)
    problems.push(`${name} stands at step ${stored?.step}, acknowledged was ${step}`);
  if (email !== undefined && stored?.email !== email)
    problems.push(`${name} has the email ${stored?.email}, acknowledged was ${email}`);
  return problems;
}

/** Grows with each commit batch that is applied. Index: `envelopes_by_number`. */
export async function lastApplied(database: Database): Promise<number> {
  const { rows } = await sql<{ last: number | null }>`
    select max(envelope_number)::int as last from envelopes`.execute(database);
  return rows[0]?.last ?? 0;
}
