/**
 * One endpoint of another product → an endpoint of an application here. It may be called again for an endpoint that was
 * moved before: an endpoint is known by its application, name and address.
 *
 * An endpoint is made disabled, gets the secret that its receiver knows, and is enabled then: no delivery is ever
 * signed with another secret. If that was cut off between, the next call goes on.
 */
import type { Json } from '@sluice/domain/values/json';
import type { ApiClient } from '../connection/api-client.ts';
import { type MovedEndpoint, objectsOf } from './moved-endpoint.ts';

/** `there already`: the endpoint was not changed. */
type Moving = 'moved' | 'there already';

/** @throws AppError as the API's client, with the fields that the API does not take. */
export async function moveEndpoint(
  api: Pick<ApiClient, 'request'>,
  { application, settings, isDisabled, secret }: MovedEndpoint,
): Promise<Moving> {
  const { id } = application;
  await makeApplication(api, application);
  const path = `/v1/applications/${encodeURIComponent(id)}/endpoints`;
  const { endpoints } = await api.request('GET', `${path}?limit=100`);
  const same = objectsOf(endpoints).find(
    (each) => each['name'] === settings.name && isSameAddress(each['endpoint'], settings.endpoint),
  );
  if (same && same['disabled'] === isDisabled) return 'there already';
  const made = same ?? (await api.request('POST', path, { ...settings, disabled: true }));
  const webhook = `/v1/reporting_webhooks/${Number(made['id'])}`;
  if (secret !== undefined)
    await api.request('POST', `${webhook}/secrets`, { secret, overlap_seconds: 0 });
  if (!isDisabled) await api.request('PUT', webhook, { disabled: false });
  return 'moved';
}

/** Applications are listed by their ids, so the whole id comes before longer ids with the same beginning. */
async function makeApplication(
  api: Pick<ApiClient, 'request'>,
  { id, name }: MovedEndpoint['application'],
): Promise<void> {
  const { applications } = await api.request(
    'GET',
    `/v1/applications?limit=1&query=${encodeURIComponent(id)}`,
  );
  if (objectsOf(applications)[0]?.['id'] === id) return;
  await api.request('POST', '/v1/applications', { id, name });
}

/** The API writes an address as a URL, with a path. */
const isSameAddress = (stored: Json | undefined, given: string): boolean =>
  typeof stored === 'string' && URL.parse(stored)?.href === URL.parse(given)?.href;
