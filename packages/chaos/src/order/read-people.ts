/** Reads people back through the API: attributes, devices, relationships and activities. */
import { setTimeout as sleep } from 'node:timers/promises';
import type { Database } from '@sluice/database/connection/connection';
import { listIdentifiers } from '@sluice/database/people/person-identifiers';
import { svcId as svcIdOf } from '@sluice/domain/values/svc-id';
import type { FoundPerson } from './compare.ts';
import { isSvcId, SVC_PREFIX } from './model/call.ts';
import { isRelation, type Json, type JsonObject } from './model/model-state.ts';
import { objectOf } from './model/steps.ts';
import { appHeaders, type Client } from './send-calls.ts';

interface Activity {
  readonly type: string;
  readonly name: string | null;
  readonly data: JsonObject;
}

interface Customer {
  readonly identifiers: {
    readonly id: string | null;
    readonly email: string | null;
    readonly svc_id: string;
  };
  readonly attributes: Readonly<Record<string, string>>;
  readonly unsubscribed: boolean;
  readonly devices: readonly {
    readonly id: string;
    readonly platform: string;
    readonly attributes: JsonObject;
  }[];
}

/** The API's largest page. */
const PAGE_SIZE = 100;
const ATTEMPTS_MAX = 50;
const RETRY_DELAY_MS = 200;
const EVENT_TYPES: ReadonlySet<string> = new Set(['event', 'page', 'screen']);
const PREFERENCES = 'svc_subscription_preferences';
const NOT_ATTRIBUTES: ReadonlySet<string> = new Set([
  'id',
  'email',
  'phone',
  'unsubscribed',
  'svc_id',
  'cio_id',
  'cio_subscription_preferences',
]);

/** @returns each person who has one of these names, once. */
export async function readPeople(
  database: Database,
  client: Client,
  names: readonly string[],
): Promise<readonly FoundPerson[]> {
  const found = new Map<string, FoundPerson>();
  const byPhone = await findByPhone(
    database,
    client.workspace.environmentId,
    names.filter((name) => name.startsWith('+')),
  );
  const learned = names.flatMap((name) => (isSvcId(name) ? name.slice(SVC_PREFIX.length) : []));
  const bySvcId = new Set([...byPhone, ...learned]);
  const others = names.filter((name) => !name.startsWith('+') && !isSvcId(name));
  for (const name of [...others, ...bySvcId]) {
    const idType = bySvcId.has(name) ? 'svc_id' : name.includes('@') ? 'email' : 'id';
    const path = `/v1/customers/${encodeURIComponent(name)}`;
    const answer = await read(client, `${path}/attributes?id_type=${idType}`);
    if (!answer) continue;
    const customer = answer['customer'] as unknown as Customer;
    const { svc_id: svcId } = customer.identifiers;
    if (!found.has(svcId))
      found.set(svcId, await readPerson(client, customer, learned.includes(svcId)));
  }
  return [...found.values()];
}

/** `undefined` if no person has the id. */
export async function readSvcId(client: Client, id: string): Promise<string | undefined> {
  const answer = await read(
    client,
    `/v1/customers/${encodeURIComponent(id)}/attributes?id_type=id`,
  );
  return (answer?.['customer'] as unknown as Customer | undefined)?.identifiers.svc_id;
}

/**
 * The API cannot search by phone.
 *
 * @returns svc_ids.
 */
async function findByPhone(
  database: Database,
  environmentId: number,
  phones: readonly string[],
): Promise<readonly string[]> {
  if (phones.length === 0) return [];
  const keys = phones.map((value) => ({
    environmentId,
    kind: 'phone' as const,
    value,
  }));
  const rows = await listIdentifiers(database, keys);
  return rows.flatMap(({ personId, suppressed }) =>
    personId === null || suppressed ? [] : [svcIdOf(personId)],
  );
}

/** @param isNamed - calls can name the person by svc_id. */
async function readPerson(
  client: Client,
  customer: Customer,
  isNamed: boolean,
): Promise<FoundPerson> {
  const { id, email, svc_id: svcId } = customer.identifiers;
  const path = `/v1/customers/${svcId}`;
  const activities = (await readPages(
    client,
    `${path}/activities?id_type=svc_id`,
    'activities',
  )) as unknown as Activity[];
  const relationships = (await readPages(
    client,
    `${path}/relationships?id_type=svc_id`,
    'svc_relationships',
  )) as unknown as {
    identifiers: { object_type_id: string; object_id: string };
    attributes: JsonObject;
  }[];
  const isMixed = activities.some(({ type }) => type === 'profile_merge' || type === 'anon_merge');
  return {
    id,
    // Shown as a call wrote it; letter case does not count.
    email: email?.toLowerCase() ?? null,
    phone: customer.attributes['phone'] ?? null,
    svc: isNamed ? svcId : null,
    attributes: Object.fromEntries(
      Object.entries(customer.attributes)
        .filter(([name]) => !NOT_ATTRIBUTES.has(name))
        .flatMap(leavesOf),
    ),
    unsubscribed: customer.unsubscribed,
    devices: Object.fromEntries(
      customer.devices.map(({ id: token, platform, attributes }) => [
        token,
        { platform, attributes },
      ]),
    ),
    relationships: Object.fromEntries(
      relationships.map(({ identifiers: { object_type_id, object_id }, attributes }) => [
        `${object_type_id}/${object_id}`,
        attributes,
      ]),
    ),
    events: activities
      .filter(({ type }) => EVENT_TYPES.has(type))
      .map(({ type, name, data }) => ({ type, name: name ?? '', data }))
      .toReversed(),
    relations: activities.filter(isRelation).map(({ type, data }) => ({
      type,
      name: objectOf(data),
      data: data['relationship_attributes'] as JsonObject,
    })),
    changes: isMixed
      ? undefined
      : activities
          .filter(({ type }) => type === 'attribute_change' || type === 'profile_create')
          .map(({ data }) => data as Readonly<Record<string, { from: Json; to: Json }>>),
  };
}

/** Calls write single preferences, by names with dots. */
const leavesOf = ([name, text]: readonly [string, string]): [string, string][] =>
  name === PREFERENCES ? leavesIn(name, JSON.parse(text) as Json) : [[name, text]];

function leavesIn(name: string, value: Json): [string, string][] {
  return typeof value === 'object' && value !== null
    ? Object.entries(value).flatMap(([key, each]) => leavesIn(`${name}.${key}`, each))
    : [[name, JSON.stringify(value)]];
}

async function readPages(client: Client, path: string, list: string): Promise<readonly Json[]> {
  const all: Json[] = [];
  let start = '';
  do {
    const page = await read(
      client,
      `${path}&limit=${PAGE_SIZE}&start=${encodeURIComponent(start)}`,
    );
    all.push(...((page?.[list] ?? []) as Json[]));
    start = (page?.['next'] ?? '') as string;
  } while (start !== '');
  return all;
}

/** `undefined` if no person is found. After a kill of Postgres, the API answers 503 until it has connections again. */
async function read({ apiUrl, workspace }: Client, path: string): Promise<JsonObject | undefined> {
  for (let attempt = 1; ; attempt++) {
    const answer = await fetch(`${apiUrl}${path}`, { headers: appHeaders(workspace) }).catch(
      String,
    );
    // While the checker follows many states, the API closes idle connections.
    const status = typeof answer === 'string' ? 503 : answer.status;
    const text = typeof answer === 'string' ? answer : await answer.text();
    if (status === 404) return undefined;
    if (status === 200) return JSON.parse(text) as JsonObject;
    if (status !== 503 || attempt === ATTEMPTS_MAX)
      throw new Error(`the API answered ${status} to ${path}: ${text}`);
    await sleep(RETRY_DELAY_MS);
  }
}
