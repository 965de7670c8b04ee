/**
 * Receives the payment provider's events. There is no token: the signature over the original bytes shows that the
 * payment provider calls. An event is written down and answered at once, and applied later
 * (`worker/src/settlement/settle-provider-events.ts`). Events that we have no use for are answered 200 too, or the
 * payment provider would stop calling.
 */
import type { BillingEffects } from './billing-effects.ts';
import { eventSubject } from '@sluice/billing-vendor/port/event-subject';
import { readProviderEvent } from '@sluice/billing-vendor/port/read-provider-event';
import { insertProviderEvent } from '@sluice/database/billing/provider-events';
import { z } from 'zod';
import { sendProblem } from '../http/error-handling.ts';
import { badBody, badRequest, commonFailures } from '../http/fields.ts';
import type { ApiServer } from '../http/api-server.ts';

/** Of the payment provider's largest objects: an invoice with many lines. */
const BODY_SIZE_BYTES_MAX = 1024 * 1024;

export function registerProviderEvents(
  scope: ApiServer,
  {
    database,
    wakeProviderEvents,
    now,
    providerEventSecret,
  }: Pick<BillingEffects, 'database' | 'providerEventSecret' | 'wakeProviderEvents' | 'now'>,
): void {
  scope.removeContentTypeParser('application/json');
  scope.addContentTypeParser('application/json', { parseAs: 'buffer' }, (_request, body, done) =>
    done(null, body),
  );
  scope.post(
    '/v1/vendor_events',
    {
      bodyLimit: BODY_SIZE_BYTES_MAX,
      schema: {
        tags: ['billing'],
        summary: 'Events of the payment provider',
        description: 'Only for the payment provider, which signs each call (`Stripe-Signature`).',
        response: {
          200: z.object({ received: z.literal(true) }),
          ...badRequest,
          ...badBody,
          ...commonFailures,
        },
      },
    },
    async (request, reply) => {
      const signature = request.headers['stripe-signature'];
      const body = Buffer.isBuffer(request.body) ? request.body : Buffer.alloc(0);
      const event =
        typeof signature === 'string'
          ? await readProviderEvent(body, signature, providerEventSecret, now())
          : undefined;
      if (!event)
        return sendProblem(request, reply, {
          code: 'invalid_signature',
          message:
            'the signature is missing, wrong or too old; sign the exact bytes with the secret of the endpoint',
        });
      if (eventSubject(event.type) && event.objectId !== '') {
        const isNew = await insertProviderEvent(database, event, now());
        if (isNew) await wakeProviderEvents().catch(() => undefined);
      }
      return reply.send({ received: true as const });
    },
  );
}
