/**
 * The webhook that `sluice listen --forward-to` makes for itself. It has a secret of its own, and is deleted in the
 * end.
 */
import { AppError } from '@sluice/domain/values/errors';
import type { ApiClient } from '../connection/api-client.ts';

export interface TemporaryWebhook {
  readonly id: number;
  /** Its own signing key. */
  readonly secret: string;
  remove(): Promise<void>;
}

/** The same API twice: Ctrl-C ends the calls of the one, and the other takes the webhook back then. */
export interface TemporaryWebhookApis {
  readonly api: ApiClient;
  readonly closingApi: ApiClient;
}

/**
 * @param endpoint - of the listener: the API and its workers must reach it, so they run on this machine.
 * @throws AppError as `ApiClient.request`
 */
export async function makeTemporaryWebhook(
  { api, closingApi }: TemporaryWebhookApis,
  endpoint: string,
  events: readonly string[],
): Promise<TemporaryWebhook> {
  const made = await api.request('POST', '/v1/reporting_webhooks', {
    name: `sluice listen ${new URL(endpoint).port}`,
    endpoint,
    events: [...events],
  });
  const { id } = made as unknown as { readonly id: number };
  const path = `/v1/reporting_webhooks/${id}`;
  const remove = async (): Promise<void> => void (await closingApi.request('DELETE', path));
  try {
    // At once: the signing secret of the workspace's other receivers stays unknown to this machine.
    const { secret } = await api.request('POST', `${path}/secrets`, { overlap_seconds: 0 });
    return { id, secret: secret as string, remove };
  } catch (error) {
    if (error instanceof AppError) await remove();
    throw error;
  }
}
