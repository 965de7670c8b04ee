/**
 * The applications of Svix, each before its endpoints, with their secrets. Four calls are read: the lists of applications and of
 * endpoints, and an endpoint's secret and headers.
 */
import { isJsonObject, type JsonObject } from '@sluice/domain/values/json';
import {
  type Moved,
  type MovedApplication,
  type MovedEndpoint,
  nameOf,
  neededText,
  objectsOf,
  type ReadSource,
  textOf,
  textsOf,
} from './moved-endpoint.ts';

const PAGE_LENGTH = 100;
/** Beginning of a secret that sender and receiver share. */
const SHARED_SECRET = 'whsec_';

/** @throws AppError as `read`, and COMMAND_FAILED for an answer without an id or an address. */
export async function* readSvix(read: ReadSource): AsyncGenerator<Moved> {
  for await (const application of pagesOf(read, '/api/v1/app')) {
    const id = neededText(application['id'], 'id of an application');
    const moved = {
      id: textOf(application['uid']) ?? id,
      name: nameOf(textOf(application['name']), id),
    };
    yield { application: moved };
    const path = `/api/v1/app/${encodeURIComponent(id)}/endpoint`;
    for await (const endpoint of pagesOf(read, path))
      yield await readEndpoint(
        read,
        `${path}/${encodeURIComponent(neededText(endpoint['id'], 'id of an endpoint'))}`,
        moved,
        endpoint,
      );
  }
}

async function readEndpoint(
  read: ReadSource,
  path: string,
  application: MovedApplication,
  endpoint: JsonObject,
): Promise<MovedEndpoint> {
  const key = textOf((await read(`${path}/secret`))['key']);
  const { headers, sensitive } = await read(`${path}/headers`);
  const url = neededText(endpoint['url'], 'url of an endpoint');
  const types = textsOf(endpoint['filterTypes']);
  const channels = textsOf(endpoint['channels']);
  // Of a key pair Svix shows the public key, with which anybody could sign.
  const isOfPair = key !== undefined && !key.startsWith(SHARED_SECRET);
  const rate = endpoint['throttleRate'] ?? endpoint['rateLimit'];
  return {
    application,
    settings: {
      name: nameOf(textOf(endpoint['description']), url),
      endpoint: url,
      signing: 'standard_webhooks',
      ...(types.length > 0 && { event_names: [...types] }),
      ...(channels.length > 0 && {
        attribute_filters: [
          { field: 'data.channel', operator: 'in' as const, values: [...channels] },
        ],
      }),
      ...(typeof rate === 'number' && rate > 0 && { rate_limit_per_second: rate }),
      ...(isJsonObject(headers) &&
        Object.keys(headers).length > 0 && { headers: headers as Record<string, string> }),
    },
    isDisabled: endpoint['disabled'] === true,
    secret: isOfPair ? undefined : key,
    byHand: [
      ...(isOfPair ? ['signature: Sluice signs with a secret, and not with a key pair'] : []),
      ...textsOf(sensitive).map((name) => `header ${name}`),
    ],
  };
}

async function* pagesOf(read: ReadSource, path: string): AsyncGenerator<JsonObject> {
  for (let iterator: string | undefined; ;) {
    const from = iterator === undefined ? '' : `&iterator=${encodeURIComponent(iterator)}`;
    const page = await read(`${path}?limit=${PAGE_LENGTH}${from}`);
    yield* objectsOf(page['data']);
    iterator = textOf(page['iterator']);
    if (page['done'] !== false || iterator === undefined) return;
  }
}
