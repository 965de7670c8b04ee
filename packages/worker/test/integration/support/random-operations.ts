/** Random operations of every kind, and the rows they leave. */
import type { Database } from '@sluice/database/connection/connection';
import type { Operation } from '@sluice/domain/operations/operation';
import {
  addDevice,
  deleteDevice,
  deleteObject,
  form,
  identify,
  identifyObject,
  merge,
  metric,
  NOW_MS,
  relate,
  relateObject,
  remove,
  segment,
  suppress,
  track,
  unsubscribeDelivery,
  unsuppress,
} from '@sluice/domain/testing/sample-operations';
import fc from 'fast-check';
import { sql } from 'kysely';

const PEOPLE = [
  'id:1',
  'id:2',
  'email:a@x',
  'email:B@x',
  'phone:+1',
  'anonymous_id:y',
  'anonymous_id:z',
];
/** Replaced by the svc_ids that two people have in a workspace (`withSvcIds`). */
const SVC_IDS = ['svc_id:#1', 'svc_id:#2'];
const OLD = { occurredAtMs: NOW_MS - 31 * 24 * 60 * 60 * 1000 };
const who = fc.constantFrom(...PEOPLE, ...SVC_IDS);
const named = fc.constantFrom(...PEOPLE.slice(0, 5), ...SVC_IDS);
const object = fc.constantFrom('acme', 'other');
const value = fc.constantFrom(1, 2, null, true, 'text');
const attributes = fc.record(
  {
    id: fc.constantFrom('1', '2'),
    email: fc.constantFrom('a@x', 'b@x', ''),
    anonymous_id: fc.constantFrom('y', 'z'),
    plan: value,
    size: value,
    unsubscribed: fc.boolean(),
    'svc_subscription_preferences.topics.topic_1': fc.boolean(),
  },
  { requiredKeys: [] },
);
const action = fc.constantFrom('add' as const, 'delete' as const);

const operation: fc.Arbitrary<Operation> = fc.oneof(
  {
    weight: 6,
    arbitrary: fc.tuple(who, attributes).map(([person, given]) => identify(person, given)),
  },
  {
    weight: 2,
    arbitrary: fc
      .tuple(named, attributes, fc.nat(3))
      .map(([person, given, at]) =>
        identify(person, given, { attributesAtMs: at * 1000, mayCreate: at > 1 }),
      ),
  },
  {
    weight: 2,
    arbitrary: fc
      .tuple(named, attributes, fc.constantFrom('y', 'z'), object, action)
      .map(([person, given, anonymousId, id, does]) =>
        identify(person, given, {
          anonymousId,
          relationships: {
            action: does,
            entries: [{ object: { objectTypeId: 1, objectId: id }, attributes: { role: 2 } }],
          },
        }),
      ),
  },
  {
    weight: 4,
    arbitrary: fc
      .tuple(who, fc.boolean())
      .map(([person, isOld]) => track(person, 'seen', isOld ? OLD : {})),
  },
  {
    weight: 1,
    arbitrary: fc
      .tuple(named, fc.nat(2))
      .map(([person, id]) => track(person, 'again', { eventId: `event ${id}`, anonymousId: 'z' })),
  },
  {
    weight: 2,
    arbitrary: fc.tuple(named, who).map(([primary, secondary]) => merge(primary, secondary)),
  },
  {
    weight: 1,
    arbitrary: fc
      .tuple(who, who)
      .map(
        ([primary, secondary]) => ({ ...merge(primary, secondary), isAlias: true }) as Operation,
      ),
  },
  { weight: 1, arbitrary: who.map(remove) },
  { weight: 1, arbitrary: who.map(suppress) },
  { weight: 1, arbitrary: who.map(unsuppress) },
  {
    weight: 2,
    arbitrary: fc
      .tuple(who, object, attributes, action)
      .map((given) => relate(given[0], given[1], { role: given[2].plan ?? 1 }, given[3])),
  },
  {
    weight: 1,
    arbitrary: fc
      .tuple(object, who, value, action)
      .map((given) => relateObject(given[0], given[1], { since: given[2] }, given[3])),
  },
  {
    weight: 1,
    arbitrary: fc.tuple(object, value).map(([id, given]) => identifyObject(id, { size: given })),
  },
  { weight: 1, arbitrary: object.map(deleteObject) },
  {
    weight: 1,
    arbitrary: fc
      .tuple(named, value)
      .map(([person, given]) => addDevice(person, 'token', { os: given })),
  },
  { weight: 1, arbitrary: named.map((person) => deleteDevice(person, 'token')) },
  {
    weight: 1,
    arbitrary: fc
      .tuple(who, fc.boolean())
      .map(([person, isAdded]) => segment(isAdded ? 'add' : 'remove', 7, person)),
  },
  {
    weight: 1,
    arbitrary: fc
      .constantFrom('a@x', 'b@x')
      .map((recipient) => metric('delivery', 'opened', { recipient })),
  },
  { weight: 1, arbitrary: fc.constant(unsubscribeDelivery('delivery')) },
  { weight: 1, arbitrary: named.map((person) => form(person, 'contact', { plan: 3 })) },
);
/** Up to ten, about a few people and objects; `environmentId` is still to be set. */
export const someOperations = fc.array(operation, { minLength: 1, maxLength: 10 });

/** The operations, about people whose svc_ids are known. */
export function withSvcIds(
  operations: readonly Operation[],
  svcIds: readonly [string, string],
): Operation[] {
  const text = JSON.stringify(operations).replaceAll(
    /"#([12])"/g,
    (_, place: string) => `"${svcIds[Number(place) - 1]}"`,
  );
  return JSON.parse(text) as Operation[];
}

/** All rows of a workspace, with people and objects numbered as they were made and our own ids left out. */
export async function everythingIn(
  database: Database,
  environmentId: number,
): Promise<Record<string, string[]>> {
  const statements = {
    people: sql`select person_id, id, email, phone, attributes, unsubscribed, attributes_at from people`,
    identifiers: sql`select person_id, kind, value, suppressed from person_identifiers`,
    objects: sql`select object_number, object_type_id, object_id, attributes from objects`,
    relationships: sql`select person_id, object_number, attributes from relationships`,
    devices: sql`select person_id, token, attributes from devices`,
    members: sql`select person_id, segment_id from segment_members`,
    messages: sql`select person_id, delivery_id, channel, recipient from message_deliveries`,
    events: sql`select person_id, anonymous_id, kind, name, data, occurred_at, processed_at from events`,
    // Without places in the order of calls and numbers of objects: those differ from run to run.
    visitors: sql`
      select anonymous_id,
             (select jsonb_object_agg(key, value - 'place') from jsonb_each(profile -> 'devices')) as devices,
             (select jsonb_agg(value - 'place' order by value - 'place') from jsonb_each(profile -> 'relationships')) as relationships,
             (select jsonb_object_agg(key, value -> 'value') from jsonb_each(profile -> 'attributes')) as attributes
        from visitors`,
    issues: sql`select code, source, field, count from ingestion_issues`,
  };
  const tables: Record<string, Record<string, unknown>[]> = {};
  for (const [table, statement] of Object.entries(statements)) {
    const { rows } = await sql<
      Record<string, unknown>
    >`${statement} where environment_id = ${environmentId}`.execute(database);
    tables[table] = rows;
  }
  const rows = Object.values(tables).flat();
  const personRank = rankOf(rows.map((row) => row['person_id']));
  const objectRank = rankOf(rows.map((row) => row['object_number']));
  const described: Record<string, string[]> = {};
  for (const [table, tableRows] of Object.entries(tables)) {
    described[table] = tableRows
      .map((row) =>
        JSON.stringify(
          sorted({
            ...row,
            person_id: personRank(row['person_id']),
            object_number: objectRank(row['object_number']),
          }),
        )
          // Ids of ours inside activities.
          .replaceAll(/"(?:a3|ob)[0-9a-f]{6,}"/g, '"ours"'),
      )
      .toSorted();
  }
  return described;
}

function rankOf(numbers: unknown[]): (number: unknown) => number {
  const given = [...new Set(numbers.filter((number) => typeof number === 'string'))].toSorted(
    (left, right) => Number(left) - Number(right),
  );
  return (number) => (typeof number === 'string' ? given.indexOf(number) : -1);
}

/** Names in order, at every level: jsonb orders them, and so must the compared value. */
function sorted(given: unknown): unknown {
  if (Array.isArray(given)) return given.map(sorted);
  if (typeof given !== 'object' || given === null || given instanceof Date) return given;
  return Object.fromEntries(
    Object.entries(given)
      .toSorted(([left], [right]) => (left < right ? -1 : 1))
      .map(([name, item]) => [name, sorted(item)]),
  );
}
