/**
 * One endpoint of another product → an endpoint of an application here. It may be called again for an endpoint that was
 * moved before: an endpoint is known by its application, name and address. If several have the same, their event names
 * and filters decide.
 *
 * An endpoint is made disabled, gets the secret that its receiver knows, and is enabled then: no delivery is ever
 * signed with another secret. If that was cut off between, the next call goes on.
 */
import { canonicalJson, type Json, type JsonObject } from '@sluice/domain/values/json';
import type { ApiClient } from '../connection/api-client.ts';
import { type MovedApplication, type MovedEndpoint, objectsOf, textsOf } from './moved-endpoint.ts';

/** `there already`: the endpoint was not changed. */
type Moving = 'moved' | 'there already';

/** The endpoints of one run. */
export interface MoveRun {
  /** All endpoints of the other product. */
  readonly source: readonly MovedEndpoint[];
  /** Ids of the endpoints here that already have their counterpart. */
  readonly matched: Set<Json>;
}

/** @throws AppError as the API's client, with the fields that the API does not take. */
export async function moveEndpoint(
  api: Pick<ApiClient, 'request'>,
  endpoint: MovedEndpoint,
  run: MoveRun,
): Promise<Moving> {
  const { application, settings, isDisabled, secret } = endpoint;
  const { id } = application;
  await moveApplication(api, application);
  const path = `/v1/applications/${encodeURIComponent(id)}/endpoints`;
  const { endpoints } = await api.request('GET', `${path}?limit=100`);
  const same = counterpartOf(endpoint, objectsOf(endpoints), run);
  if (same) run.matched.add(same['id'] ?? null);
  if (same && same['disabled'] === isDisabled) return 'there already';
  const made = same ?? (await api.request('POST', path, { ...settings, disabled: true }));
  run.matched.add(made['id'] ?? null);
  const webhook = `/v1/reporting_webhooks/${Number(made['id'])}`;
  if (secret !== undefined)
    await api.request('POST', `${webhook}/secrets`, { secret, overlap_seconds: 0 });
  if (!isDisabled) await api.request('PUT', webhook, { disabled: false });
  return 'moved';
}

/** Applications are listed by their ids, so the whole id comes before longer ids with the same beginning. */
export async function moveApplication(
  api: Pick<ApiClient, 'request'>,
  { id, name }: MovedApplication,
): Promise<Moving> {
  const { applications } = await api.request(
    'GET',
    `/v1/applications?limit=1&query=${encodeURIComponent(id)}`,
  );
  if (objectsOf(applications)[0]?.['id'] === id) return 'there already';
  await api.request('POST', '/v1/applications', { id, name });
  return 'moved';
}

/**
 * The endpoint here that an earlier run made for this one. Its names and filters may have changed here since, so an
 * endpoint that equals another one of the source is left to that one, and any other is taken.
 */
function counterpartOf(
  { application, settings }: MovedEndpoint,
  listed: readonly JsonObject[],
  { source, matched }: MoveRun,
): JsonObject | undefined {
  const candidates = listed.filter(
    (each) => !matched.has(each['id'] ?? null) && isSameReceiver(each, settings),
  );
  const wanted = choiceOf(settings);
  const ofOthers = new Set(
    source
      .filter((other) => other.application.id === application.id)
      .filter((other) => isSameReceiver(other.settings, settings))
      .map((other) => choiceOf(other.settings)),
  );
  return (
    candidates.find((each) => choiceOf(each) === wanted) ??
    candidates.find((each) => !ofOthers.has(choiceOf(each)))
  );
}

/** The events that an endpoint is sent, as one text. */
const choiceOf = ({ event_names: names, attribute_filters: filters }: JsonObject): string =>
  canonicalJson([textsOf(names).toSorted(), [...objectsOf(filters)]]);

const isSameReceiver = (one: JsonObject, other: MovedEndpoint['settings']): boolean =>
  one['name'] === other.name && isSameAddress(one['endpoint'], other.endpoint);

/** The API writes an address as a URL, with a path. */
const isSameAddress = (stored: Json | undefined, given: string): boolean =>
  typeof stored === 'string' && URL.parse(stored)?.href === URL.parse(given)?.href;
