/**
 * `…/secrets`: the keys that a webhook signs with.
 *
 * A secret is shown once, in the answer of the call that makes it; later only its last characters are shown. Making
 * one while another signs starts a rotation: both sign until the new one is promoted, by a call or by the end of the
 * overlap.
 */
import type { Database } from '@sluice/database/connection/connection';
import {
  cancelWebhookSecret,
  promoteWebhookSecret,
  rotateWebhookSecret,
} from '@sluice/database/webhooks/signing-key-changes';
import { type SigningKeys, findSigningKeys } from '@sluice/database/webhooks/signing-keys';
import { secretContext, standardForm } from '@sluice/domain/delivery/webhook';
import type { LaneKey } from '@sluice/domain/wake-ups/lane-key';
import type { EncryptedText } from '@sluice/platform/secrets/encrypted-text';
import { z } from 'zod';
import { changeOriginOf } from '../auth/authenticate.ts';
import type { ApiServer } from '../http/api-server.ts';
import {
  bodyFailures,
  changeFailures,
  laneOf,
  noWebhook,
  readFailures,
  refuse,
  wakeChanged,
  webhookParams,
  webhookTags,
} from './webhook-route.ts';

export interface WebhookSecretEffects {
  readonly database: Database;
  /** Lets a failing lane try with the present keys. */
  readonly wakeLane: (lane: LaneKey) => Promise<void>;
  readonly encryptedText: EncryptedText;
  /** Makes a secret that cannot be guessed. */
  readonly newSecret: () => string;
  readonly now: () => number;
}

const OVERLAP_SECONDS_DEFAULT = 86_400;
const OVERLAP_SECONDS_MAX = 30 * 86_400;
const SECRET_LENGTH_MIN = 24;
const SECRET_LENGTH_MAX = 256;
const HINT_LENGTH = 4;

const secret = z
  .object({
    role: z.enum(['current', 'next']).meta({
      description:
        '`current` makes `x-svc-signature`. `next`, while keys are rotated, makes `x-svc-signature-next`.',
    }),
    hint: z.string().meta({ description: 'Its last characters.' }),
    created_at: z.int().meta({ description: 'Unix seconds.' }),
    promoted_at: z
      .int()
      .nullable()
      .meta({ description: 'Unix seconds when `next` becomes `current`; null for `current`.' }),
  })
  .meta({ id: 'WebhookSecret', description: 'A signing key, which is not shown again.' });

const secrets = z.object({ secrets: z.array(secret) });

const madeSecret = z
  .object({
    secret: z.string().meta({
      description: 'Shown here and never again. Its characters, as they are, are the HMAC key.',
    }),
    standard_webhooks_secret: z
      .string()
      .meta({ description: 'The same key as the libraries of Standard Webhooks want it.' }),
    secrets: z.array(secret),
  })
  .meta({ id: 'NewWebhookSecret', description: 'A secret that only this answer shows.' });

const rotation = z
  .object({
    secret: z
      .string()
      .min(SECRET_LENGTH_MIN)
      .max(SECRET_LENGTH_MAX)
      .regex(/^[\x21-\x7e]+$/, 'must be printable ASCII without spaces')
      .optional()
      .meta({
        description:
          'One that receivers know already, such as a `whsec_…`; made for you otherwise.',
      }),
    overlap_seconds: z
      .int()
      .min(0)
      .max(OVERLAP_SECONDS_MAX)
      .default(OVERLAP_SECONDS_DEFAULT)
      .meta({ description: 'How long both sign. 0: the old one never signs again.' }),
  })
  .meta({ id: 'WebhookSecretRotation', requestExamples: [{ overlap_seconds: 3_600 }] });

export function registerWebhookSecrets(
  app: ApiServer,
  { database, now, encryptedText, newSecret, wakeLane }: WebhookSecretEffects,
): void {
  const list = (lane: LaneKey, keys: SigningKeys): z.infer<typeof secret>[] => {
    const hintOf = (encrypted: string) =>
      encryptedText.decrypt(encrypted, secretContext(lane.environmentId)).slice(-HINT_LENGTH);
    const { signingKey, madeAt, next } = keys;
    const current = {
      role: 'current' as const,
      hint: hintOf(signingKey),
      created_at: toSeconds(madeAt),
      promoted_at: null,
    };
    if (!next) return [current];
    const following = {
      role: 'next' as const,
      hint: hintOf(next.signingKey),
      created_at: toSeconds(next.madeAt),
      promoted_at: toSeconds(next.signsFrom),
    };
    return [current, following];
  };
  const NO_ROTATION =
    'no rotation is under way, so there is no next secret; begin a rotation first';

  app.get(
    '/v1/reporting_webhooks/:webhook_id/secrets',
    {
      config: { isInPortal: true },
      schema: {
        tags: webhookTags,
        summary: 'List the secrets of a reporting webhook',
        description: 'The one that signs and, while they are rotated, the next one.',
        params: webhookParams,
        response: { 200: secrets, ...readFailures },
      },
    },
    async (request, reply) => {
      const lane = laneOf(request, request.params.webhook_id);
      const keys = await findSigningKeys(database, lane, now());
      return keys ? reply.send({ secrets: list(lane, keys) }) : noWebhook(request, reply);
    },
  );

  app.post(
    '/v1/reporting_webhooks/:webhook_id/secrets',
    {
      config: { capability: 'webhooks.rotate', isInPortal: true },
      schema: {
        tags: webhookTags,
        summary: 'Make a new secret for a reporting webhook',
        description:
          'Both sign for `overlap_seconds`: `x-svc-signature` stays with the old one and `x-svc-signature-next` ' +
          'carries the new one’s. Then, or when it is promoted, the new one is the only one. ' +
          'Each change of the secrets lets blocked deliveries be tried at once.',
        params: webhookParams,
        body: rotation,
        response: {
          200: madeSecret,
          ...bodyFailures,
        },
      },
    },
    async (request, reply) => {
      const lane = laneOf(request, request.params.webhook_id);
      const nowMs = now();
      const made = request.body.secret ?? newSecret();
      const changed = await rotateWebhookSecret(
        database,
        lane,
        {
          signingKey: encryptedText.encrypt(made, secretContext(lane.environmentId)),
          signsFromMs: nowMs + request.body.overlap_seconds * 1000,
        },
        changeOriginOf(request),
        nowMs,
      );
      if (changed.outcome === 'not_found') return noWebhook(request, reply);
      if (changed.outcome === 'not_now')
        return refuse(
          request,
          reply,
          'a rotation is under way; promote its secret, or take it back, first',
        );
      if (changed.mustWake) await wakeChanged(request, lane, wakeLane);
      // Read back from the row: an earlier run of the same call may have made another one.
      const kept = changed.keys.next?.signingKey ?? changed.keys.signingKey;
      const shown = encryptedText.decrypt(kept, secretContext(lane.environmentId));
      return reply.send({
        secret: shown,
        standard_webhooks_secret: standardForm(shown, toBase64),
        secrets: list(lane, changed.keys),
      });
    },
  );

  app.post(
    '/v1/reporting_webhooks/:webhook_id/secrets/promote',
    {
      config: { capability: 'webhooks.rotate', isInPortal: true },
      schema: {
        tags: webhookTags,
        summary: 'End a rotation at once',
        description: 'The next secret is the only one from here on.',
        params: webhookParams,
        response: { 200: secrets, ...changeFailures },
      },
    },
    async (request, reply) => {
      const lane = laneOf(request, request.params.webhook_id);
      const changed = await promoteWebhookSecret(database, lane, changeOriginOf(request), now());
      if (changed.outcome === 'not_found') return noWebhook(request, reply);
      if (changed.outcome === 'not_now') return refuse(request, reply, NO_ROTATION);
      if (changed.mustWake) await wakeChanged(request, lane, wakeLane);
      return reply.send({ secrets: list(lane, changed.keys) });
    },
  );

  app.delete(
    '/v1/reporting_webhooks/:webhook_id/secrets/next',
    {
      config: { capability: 'webhooks.rotate', isInPortal: true },
      schema: {
        tags: webhookTags,
        summary: 'Take the next secret back',
        description: 'The rotation, if there is one, is over, and the current secret stays.',
        params: webhookParams,
        response: { 200: secrets, ...readFailures },
      },
    },
    async (request, reply) => {
      const lane = laneOf(request, request.params.webhook_id);
      const origin = changeOriginOf(request);
      const changed = await cancelWebhookSecret(database, lane, origin, now());
      if (changed.outcome === 'changed' && changed.mustWake)
        await wakeChanged(request, lane, wakeLane);
      // A second call finds it done, which is no error.
      const keys =
        changed.outcome === 'changed' ? changed.keys : await findSigningKeys(database, lane, now());
      return keys ? reply.send({ secrets: list(lane, keys) }) : noWebhook(request, reply);
    },
  );
}

const toSeconds = (date: Date): number => Math.floor(date.getTime() / 1000);
const toBase64 = (text: string): string => Buffer.from(text).toString('base64');
