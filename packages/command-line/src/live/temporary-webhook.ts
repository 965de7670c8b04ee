/**
 * The webhook that `sluice listen --forward-to` makes for itself. It has a secret of its own, and is deleted in the
 * end.
 */
import { type ApiClient, type components, resultOf } from '@sluice/client';
import { AppError } from '@sluice/domain/values/errors';

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
 * @throws AppError as the calls of the API
 */
export async function makeTemporaryWebhook(
  { api, closingApi }: TemporaryWebhookApis,
  endpoint: string,
  events: components['schemas']['NewReportingWebhookInput']['events'],
): Promise<TemporaryWebhook> {
  const body = { name: `sluice listen ${new URL(endpoint).port}`, endpoint, events };
  const { id } = await resultOf(api.POST('/v1/reporting_webhooks', { body }));
  const params = { path: { webhook_id: id } };
  const remove = async (): Promise<void> =>
    void (await resultOf(closingApi.DELETE('/v1/reporting_webhooks/{webhook_id}', { params })));
  try {
    // At once: the signing secret of the workspace's other receivers stays unknown to this machine.
    const { secret } = await resultOf(
      api.POST('/v1/reporting_webhooks/{webhook_id}/secrets', {
        params,
        body: { overlap_seconds: 0 },
      }),
    );
    return { id, secret, remove };
  } catch (error) {
    if (error instanceof AppError) await remove();
    throw error;
  }
}
