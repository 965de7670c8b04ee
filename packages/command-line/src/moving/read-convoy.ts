/**
 * The endpoints of a project of Convoy with their secrets and subscriptions. An owner of endpoints becomes an application, and
 * so does an endpoint without an owner.
 */
import { isJsonObject, type JsonObject } from '@sluice/domain/values/json';
import { authenticationOf } from './convoy-authentication.ts';
import { attributeFiltersOf } from './convoy-filters.ts';
import {
  type MovedEndpoint,
  nameOf,
  neededText,
  objectsOf,
  type ReadSource,
  textOf,
  textsOf,
} from './moved-endpoint.ts';

const PAGE_LENGTH = 100;
/** Of a subscription to all types. */
const EVERY_TYPE = '*';

/** @throws AppError as `read`, and COMMAND_FAILED for an answer without an id or an address. */
export async function* readConvoy(
  read: ReadSource,
  project: string,
): AsyncGenerator<MovedEndpoint> {
  const path = `/api/v1/projects/${encodeURIComponent(project)}`;
  for await (const endpoint of pagesOf(read, `${path}/endpoints`)) {
    const id = neededText(endpoint['uid'], 'uid of an endpoint');
    const subscriptions: JsonObject[] = [];
    const ofEndpoint = `${path}/subscriptions?endpointId=${encodeURIComponent(id)}`;
    for await (const subscription of pagesOf(read, ofEndpoint)) subscriptions.push(subscription);
    yield toMoved(id, endpoint, subscriptions);
  }
}

function toMoved(
  id: string,
  endpoint: JsonObject,
  subscriptions: readonly JsonObject[],
): MovedEndpoint {
  const url = neededText(endpoint['url'] ?? endpoint['target_url'], 'url of an endpoint');
  const name = nameOf(textOf(endpoint['name']), textOf(endpoint['title']), url);
  const owner = textOf(endpoint['owner_id']);
  const filters = subscriptions.map(({ filter_config: config }) => config).filter(isJsonObject);
  const types = [...new Set(filters.flatMap((filter) => textsOf(filter['event_types'])))];
  const isOfSome = types.length > 0 && !types.includes(EVERY_TYPE);
  const attributeFilters = attributeFiltersOf(
    subscriptions.map((each) => memberOf(memberOf(each, 'filter_config'), 'filter')),
  );
  const { settings, byHand } = authenticationOf(endpoint);
  return {
    application: owner === undefined ? { id, name } : { id: owner, name: nameOf(owner) },
    settings: {
      name,
      endpoint: url,
      ...(isOfSome && { event_names: types }),
      ...rateOf(endpoint),
      ...(attributeFilters?.length && {
        attribute_filters: attributeFilters.map(({ field, operator, values }) => ({
          field,
          operator,
          ...(values && { values: [...values] }),
        })),
      }),
      ...settings,
    },
    isDisabled: textOf(endpoint['status']) !== undefined && endpoint['status'] !== 'active',
    secret: secretOf(endpoint),
    byHand: [
      ...byHand,
      ...(subscriptions.length === 0 ? ['no subscription: it is sent every type here'] : []),
      ...(attributeFilters ? [] : ['filter of a subscription']),
    ],
  };
}

/** The newest that has no end. */
const secretOf = (endpoint: JsonObject): string | undefined =>
  objectsOf(endpoint['secrets'])
    .filter((secret) => (secret['expires_at'] ?? secret['deleted_at'] ?? null) === null)
    .map((secret) => textOf(secret['value']))
    .findLast((value) => value !== undefined);

/** Convoy counts requests in a number of seconds. 0: no limit. A rate below one a second becomes one. */
function rateOf(endpoint: JsonObject): { readonly rate_limit_per_second?: number } {
  const { rate_limit: count, rate_limit_duration: seconds } = endpoint;
  if (typeof count !== 'number' || typeof seconds !== 'number' || count <= 0 || seconds <= 0)
    return {};
  return { rate_limit_per_second: Math.min(10_000, Math.max(1, Math.floor(count / seconds))) };
}

const memberOf = (whole: JsonObject, name: string): JsonObject => {
  const member = whole[name] ?? null;
  return isJsonObject(member) ? member : {};
};

async function* pagesOf(read: ReadSource, path: string): AsyncGenerator<JsonObject> {
  const list = `${path}${path.includes('?') ? '&' : '?'}perPage=${PAGE_LENGTH}&direction=next`;
  for (let cursor: string | undefined; ;) {
    const from = cursor === undefined ? '' : `&next_page_cursor=${encodeURIComponent(cursor)}`;
    const { data } = await read(`${list}${from}`);
    if (!isJsonObject(data ?? null)) return;
    const { content, pagination } = data as JsonObject;
    yield* objectsOf(content);
    if (!isJsonObject(pagination) || pagination['has_next_page'] !== true) return;
    cursor = textOf(pagination['next_page_cursor']);
    if (cursor === undefined) return;
  }
}
