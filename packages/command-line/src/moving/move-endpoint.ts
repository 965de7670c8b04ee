/**
 * One endpoint of another product → an endpoint of an application here. It may be called again for an endpoint that was
 * moved before: an endpoint is known by its application, name and address. If several have the same, their event names
 * and filters decide.
 *
 * An endpoint is made disabled, gets the secret that its receiver knows, and is enabled then: no delivery is ever
 * signed with another secret. Until the last step its name has a mark. If that was cut off between, the next call finds
 * the mark and goes on. An endpoint without the mark is its owner's, and is left as it is.
 */
import { type ApiClient, type components, resultOf } from '@sluice/client';
import { canonicalJson } from '@sluice/domain/values/json';
import { cutName, type MovedApplication, type MovedEndpoint } from './moved-endpoint.ts';

const ENDPOINTS = '/v1/applications/{application_id}/endpoints';
const WEBHOOK = '/v1/reporting_webhooks/{webhook_id}';

/** At the end of a name. */
const INCOMPLETE = ' (move not complete)';

const incompleteName = (name: string): string => cutName(name, INCOMPLETE);

/** `there already`: the endpoint was not changed. */
type Moving = 'moved' | 'there already';

/** The endpoints of one run. */
export interface MoveRun {
  /** All endpoints of the other product. */
  readonly source: readonly MovedEndpoint[];
  /** Ids of the endpoints here that already have their counterpart. */
  readonly matched: Set<number>;
}

type ListedEndpoint = components['schemas']['ReportingWebhook'];

/** @throws AppError as the API's client, with the fields that the API does not take. */
export async function moveEndpoint(
  api: ApiClient,
  endpoint: MovedEndpoint,
  run: MoveRun,
): Promise<Moving> {
  const { application, settings, isDisabled, secret } = endpoint;
  await moveApplication(api, application);
  const ofApplication = { application_id: application.id };
  const { endpoints } = await resultOf(
    api.GET(ENDPOINTS, { params: { path: ofApplication, query: { limit: 100 } } }),
  );
  const same = counterpartOf(endpoint, endpoints, run);
  if (same) run.matched.add(same.id);
  const { name } = settings;
  if (same && same.name !== incompleteName(name)) return 'there already';
  const body = { ...settings, name: incompleteName(name), disabled: true };
  const made =
    same ?? (await resultOf(api.POST(ENDPOINTS, { params: { path: ofApplication }, body })));
  run.matched.add(made.id);
  const params = { path: { webhook_id: made.id } };
  if (secret !== undefined)
    await resultOf(
      api.POST(`${WEBHOOK}/secrets`, { params, body: { secret, overlap_seconds: 0 } }),
    );
  await resultOf(api.PUT(WEBHOOK, { params, body: { name, disabled: isDisabled } }));
  return 'moved';
}

/** Applications are listed by their ids, so the whole id comes before longer ids with the same beginning. */
export async function moveApplication(
  api: ApiClient,
  { id, name }: MovedApplication,
): Promise<Moving> {
  const { applications } = await resultOf(
    api.GET('/v1/applications', { params: { query: { limit: 1, query: id } } }),
  );
  if (applications[0]?.id === id) return 'there already';
  await resultOf(api.POST('/v1/applications', { body: { id, name } }));
  return 'moved';
}

/**
 * The endpoint here that an earlier run made for this one. Its names and filters may have changed here since, so an
 * endpoint that equals another one of the source is left to that one, and any other is taken.
 */
function counterpartOf(
  { application, settings }: MovedEndpoint,
  listed: readonly ListedEndpoint[],
  { source, matched }: MoveRun,
): ListedEndpoint | undefined {
  const candidates = listed.filter(
    (each) => !matched.has(each.id) && isSameReceiver(each, settings),
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
const choiceOf = ({ event_names: names, attribute_filters: filters }: Choice): string =>
  canonicalJson([(names ?? []).toSorted(), filters ?? []]);

type Choice = Pick<MovedEndpoint['settings'], 'event_names' | 'attribute_filters'>;
type Receiver = Pick<MovedEndpoint['settings'], 'name' | 'endpoint'>;

const isSameReceiver = (one: Receiver, { name, endpoint }: Receiver): boolean =>
  [name, incompleteName(name)].includes(one.name) && isSameAddress(one.endpoint, endpoint);

/** The API writes an address as a URL, with a path. */
const isSameAddress = (stored: string, given: string): boolean =>
  URL.parse(stored)?.href === URL.parse(given)?.href;
