/**
 * `…/deliveries/{sequence}/attempts/{attempt}/request`: the request of an attempt. The body is as it was sent. The headers
 * are made again from the webhook as it is configured now. A signature is shown if its key is
 * the one that signed then. The webhook's own headers are shown without their values.
 */
import { createHmac } from 'node:crypto';
import type { Database } from '@sluice/database/connection/connection';
import { findSentAttempt, type SentAttempt } from '@sluice/database/delivery/delivery-bodies';
import { findSigningKeys } from '@sluice/database/webhooks/signing-keys';
import { findWebhook, type Webhook } from '@sluice/database/webhooks/webhooks';
import {
  deliveryHeaders,
  secretContext,
  standardKey,
  standardMessageId,
  standardStringToSign,
  stringToSign,
} from '@sluice/domain/delivery/webhook';
import type { EncryptedText } from '@sluice/platform/secrets/encrypted-text';
import { z } from 'zod';
import type { ApiServer } from '../http/api-server.ts';
import { sendProblem } from '../http/error-handling.ts';
import { commonFailures, idInPath, missing, sequenceInPath } from '../http/fields.ts';
import { notFound } from '../http/problem.ts';
import { hasOAuth2 } from '../endpoint-credentials/endpoint-credentials.ts';
import { openHeaders } from '../endpoint-credentials/webhook-headers.ts';
import { laneOf, noWebhook } from './webhook-route.ts';

export interface AttemptRequestEffects {
  readonly database: Database;
  readonly encryptedText: EncryptedText;
  readonly now: () => number;
}

const sentRequest = z.object({
  request: z.object({
    method: z.literal('POST'),
    url: z.string(),
    headers: z.record(z.string(), z.string()),
    body: z.string(),
    size_bytes: z.int(),
  }),
});

const params = z.object({ webhook_id: idInPath, sequence: sequenceInPath, attempt: idInPath });

export function registerAttemptRequest(
  app: ApiServer,
  { database, encryptedText, now }: AttemptRequestEffects,
): void {
  app.get(
    '/v1/reporting_webhooks/:webhook_id/deliveries/:sequence/attempts/:attempt/request',
    {
      config: { isInPortal: true },
      schema: {
        tags: ['reporting webhooks'],
        summary: 'The request of an attempt',
        description:
          'The body as it was sent, and the headers as the webhook would have them today. A text in parentheses stands for a value that is not shown.',
        params,
        response: { 200: sentRequest, ...missing, ...commonFailures },
      },
    },
    async (request, reply) => {
      const lane = laneOf(request, request.params.webhook_id);
      const webhook = await findWebhook(database, lane.environmentId, lane.webhookId);
      if (!webhook) return noWebhook(request, reply);
      const { sequence, attempt } = request.params;
      const sent = await findSentAttempt(database, lane, sequence, attempt);
      if (!sent) return sendProblem(request, reply, notFound('the attempt was'));
      const keys = await findSigningKeys(database, lane, now());
      const timestamp = Math.floor(sent.startedAt.getTime() / 1000);
      const isOfThisKey = keys !== undefined && keys.madeAt <= sent.startedAt && !keys.next;
      const key = isOfThisKey
        ? encryptedText.decrypt(keys.signingKey, secretContext(lane.environmentId))
        : undefined;
      const own = Object.keys(
        openHeaders(webhook.customHeaders, lane.environmentId, encryptedText),
      );
      return reply.send({
        request: {
          method: 'POST',
          url: webhook.endpoint,
          headers: {
            ...signedHeaders(webhook, sent, timestamp, key),
            ...Object.fromEntries(own.map((name) => [name, NOT_SHOWN])),
            ...(hasOAuth2(webhook, lane.environmentId, encryptedText) && {
              authorization: TOKEN_NOT_SHOWN,
            }),
          },
          body: sent.body,
          size_bytes: Buffer.byteLength(sent.body),
        },
      });
    },
  );
}

/** @param key - that signed; undefined if it is not known any more. */
function signedHeaders(
  { signing, standardWebhooks }: Pick<Webhook, 'signing' | 'standardWebhooks'>,
  { eventId, body }: Pick<SentAttempt, 'eventId' | 'body'>,
  timestamp: number,
  key: string | undefined,
): Record<string, string> {
  const signature = key === undefined ? CHANGED : signed(key, stringToSign(timestamp, body), 'hex');
  const ours = signing === 'sluice' ? { signature } : {};
  const isStandard = signing === 'standard_webhooks' || (standardWebhooks && signing === 'sluice');
  if (!isStandard) return deliveryHeaders(timestamp, ours);
  const messageId = standardMessageId(eventId);
  if (key === undefined) {
    const standard = { eventId: messageId, signatures: [] };
    return { ...deliveryHeaders(timestamp, { ...ours, standard }), 'webhook-signature': CHANGED };
  }
  const ofStandard = Buffer.from(standardKey(key, toBase64), 'base64');
  const signatures = [
    signed(ofStandard, standardStringToSign(messageId, timestamp, body), 'base64'),
  ];
  return deliveryHeaders(timestamp, { ...ours, standard: { eventId: messageId, signatures } });
}

const signed = (key: string | Buffer, text: string, coding: 'hex' | 'base64'): string =>
  createHmac('sha256', key).update(text).digest(coding);
const toBase64 = (text: string): string => Buffer.from(text).toString('base64');

const CHANGED = '(the signing key was changed since)';
const TOKEN_NOT_SHOWN = '(the access token of OAuth2; not shown)';
const NOT_SHOWN = '(set by you; not shown)';
