/**
 * `GET /v1/customers?query=`: people whose id, email or svc_id begins with a text, ids first. Without a text it lists
 * the latest people. Beside the search by email, which clients know.
 */
import type { Database } from '@sluice/database/connection/connection';
import {
  type FoundPerson,
  listLatestPeople,
  listPeopleByPrefix,
} from '@sluice/database/people/customer-reads';
import { storedValue } from '@sluice/domain/operations/state-keys';
import { personIdOf, svcId } from '@sluice/domain/values/svc-id';
import { z } from 'zod';
import { text } from '../http/fields.ts';
import { readStart, writePageToken } from '../http/page.ts';

const POSITION_LENGTH_MAX = 400;

/** Of the latest: a number. Of a search: which kind of identifier, and the last one that was shown. */
const position = z.union([
  // The largest bigint has 19 digits, and not every number of 19 digits is one.
  z.tuple([z.literal('latest'), z.string().regex(/^\d{1,18}$/)]),
  z.tuple([z.enum(['id', 'email']), text(POSITION_LENGTH_MAX)]),
]);

export interface PeoplePage {
  readonly people: readonly FoundPerson[];
  readonly next: string;
}

/** @throws RequestRefused if `start` is no token of this list. */
export async function searchPeople(
  database: Database,
  environmentId: number,
  {
    query,
    start,
    limit,
  }: { readonly query: string; readonly start: string | undefined; readonly limit: number },
): Promise<PeoplePage> {
  const from = readStart(start, position);
  if (query === '') {
    const before = from?.[0] === 'latest' ? from[1] : undefined;
    const rows = await listLatestPeople(database, environmentId, before, limit + 1);
    const page = rows.slice(0, limit);
    const last = page.at(-1);
    const next = rows.length > limit && last ? writePageToken(['latest', last.personId]) : '';
    return { people: page, next };
  }
  const people: FoundPerson[] = [];
  if (from === undefined) people.push(...(await bySvcId(database, environmentId, query)));
  // Emails follow the ids, so that a page is in one order or the other.
  for (const kind of from?.[0] === 'email' ? (['email'] as const) : (['id', 'email'] as const)) {
    const room = limit - people.length;
    const after = from?.[0] === kind ? from[1] : undefined;
    const prefix = storedValue(kind, query);
    const rows = await listPeopleByPrefix(database, environmentId, kind, prefix, after, room + 1);
    people.push(...rows.slice(0, room));
    const last = rows[room - 1];
    if (rows.length > room)
      return { people: unique(people), next: writePageToken([kind, last?.value ?? after ?? '']) };
  }
  return { people: unique(people), next: '' };
}

/** Only a whole one: its digits are of a number, whose beginnings are no range. */
async function bySvcId(
  database: Database,
  environmentId: number,
  query: string,
): Promise<FoundPerson[]> {
  const personId = personIdOf(query.replace(/^(?:svc|cio)_/, ''));
  if (personId === undefined) return [];
  const found = await listLatestPeople(database, environmentId, String(personId + 1), 1);
  return found.filter((person) => person.personId === String(personId));
}

/** Somebody whose id and email begin alike is on a page once. */
const unique = (people: readonly FoundPerson[]): FoundPerson[] => [
  ...new Map(people.map((person) => [person.personId, person])).values(),
];

export const toFoundPerson = (person: FoundPerson) => {
  const id = svcId(Number(person.personId));
  return {
    id: person.id,
    email: person.email,
    svc_id: id,
    cio_id: id,
  };
};
