/** The parts that every route below `/v1/reporting_webhooks/{webhook_id}` has. */
import type { LaneKey } from '@sluice/domain/wake-ups/lane-key';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { z } from 'zod';
import { environmentOf } from '../auth/authenticate.ts';
import { sendProblem } from '../http/error-handling.ts';
import {
  badBody,
  badRequest,
  commonFailures,
  conflicting,
  idInPath,
  missing,
} from '../http/fields.ts';
import { notFound } from '../http/problem.ts';

export const webhookTags = ['reporting webhooks'];
export const webhookParams = z.object({ webhook_id: idInPath });

/** For routes that read. */
export const readFailures = { ...missing, ...commonFailures };
/** For routes that ask for a change of the present state. */
export const changeFailures = { ...conflicting, ...readFailures };
/** The same with a body. */
export const bodyFailures = { ...badRequest, ...badBody, ...changeFailures };

/** The webhook of the path, as the caller's workspace has it. */
export function laneOf(request: FastifyRequest, webhookId: number): LaneKey {
  return { environmentId: environmentOf(request), webhookId };
}

export const noWebhook = (request: FastifyRequest, reply: FastifyReply): FastifyReply =>
  sendProblem(request, reply, notFound('the reporting webhook was'));

/** Has a lane drained after a change; if the wake-up is lost, the reconciliation loop finds the lane. */
export async function wakeChanged(
  request: FastifyRequest,
  lane: LaneKey,
  wakeLane: (lane: LaneKey) => Promise<void>,
): Promise<void> {
  await wakeLane(lane).catch((error: unknown) => {
    request.log.warn(
      { error, ...lane },
      'a delivery queue could not be woken; the reconciliation loop will find it',
    );
  });
}

/** The present state does not allow it. */
export const refuse = (
  request: FastifyRequest,
  reply: FastifyReply,
  message: string,
): FastifyReply => sendProblem(request, reply, { code: 'conflict', message });
