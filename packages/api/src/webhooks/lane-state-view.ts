/** State of a webhook's deliveries, as `GET …/state` shows it. */
import type { Disabling, LaneState } from '@sluice/database/delivery/lane-states';
import { FAILURE_CLASSES } from '@sluice/domain/delivery/delivery-failure';
import { z } from 'zod';

const seconds = z.int().nullable();

export const laneState = z
  .object({
    state: z.enum(['healthy', 'failing', 'disabled']).meta({
      description:
        '`failing`: the head is tried again and again, and all that follows waits for it. `disabled`: no request is sent until the webhook is enabled.',
    }),
    disabled: z.boolean(),
    disabled_at: seconds.meta({ description: 'Unix seconds; null unless disabled.' }),
    disabled_by: z
      .object({
        type: z.enum(['user', 'service_account', 'portal', 'system']).meta({
          description:
            '`portal`: by a link to the portal. `system`: the service itself, because the workspace is not open any more.',
        }),
        user_id: z.int().nullable(),
        service_account_id: z.int().nullable(),
        name: z.string().nullable().meta({
          description: 'The current name; the name of the key if the actor has no other name.',
        }),
      })
      .nullable()
      .meta({
        description: 'The actor that disabled it, as in the audit log; null unless disabled.',
      }),
    sending: z.boolean().meta({ description: 'A worker is at it now.' }),
    unfinished_count: z
      .int()
      .meta({ description: 'Deliveries that are neither delivered nor abandoned, with the head.' }),
    next_probe_at: seconds.meta({
      description: 'Unix seconds; null while healthy and while disabled.',
    }),
    last_delivered_at: seconds.meta({ description: 'To the minute; of the last 30 days.' }),
    head: z
      .object({
        sequence: z.int(),
        event_id: z.string(),
        event_type: z.string(),
        attempts: z.int(),
        first_attempt_at: seconds,
        last_attempt_at: seconds,
        status: z.int().nullable().meta({ description: 'Of the last attempt.' }),
        failure: z.string().nullable().meta({ description: 'The class of the last failure.' }),
        failure_meaning: z.string().nullable(),
        failure_message: z.string().nullable(),
        abandons_at: seconds.meta({
          description: 'Unix seconds of the last attempt that it will get; null before the first.',
        }),
      })
      .nullable()
      .meta({ description: 'The first delivery that is not finished; null if all are finished.' }),
  })
  .meta({ id: 'LaneState', description: 'The state of a webhook’s deliveries.' });

const toSeconds = (date: Date | null) => (date ? Math.floor(date.getTime() / 1000) : null);

/** As the portal shows it: customers of the workspace do not see the names of its staff. */
export const withoutStaff = (disabling: Disabling): Disabling => ({
  ...disabling,
  userId: null,
  serviceAccountId: null,
  actorName: disabling.actorType === 'portal' ? disabling.actorName : null,
});

/**
 * @param disabling - of a webhook that is disabled.
 * @param giveUpAfterMs - how long after its first attempt a delivery is abandoned.
 */
export function toWire(
  lane: LaneState,
  disabling: Disabling | undefined,
  giveUpAfterMs: number,
): z.infer<typeof laneState> {
  const { head } = lane;
  return {
    state: lane.isPaused ? 'disabled' : lane.state,
    disabled: lane.isPaused,
    disabled_at: toSeconds(disabling?.disabledAt ?? null),
    disabled_by: disabling
      ? {
          type: disabling.actorType,
          user_id: disabling.userId,
          service_account_id: disabling.serviceAccountId,
          name: disabling.actorName,
        }
      : null,
    sending: lane.isHeld,
    unfinished_count: lane.unfinishedCount,
    next_probe_at: lane.isPaused ? null : toSeconds(lane.nextProbeAt),
    last_delivered_at: toSeconds(lane.lastDeliveredAt),
    head: head
      ? {
          sequence: head.sequence,
          event_id: head.eventId,
          event_type: head.eventType,
          attempts: head.attempts,
          first_attempt_at: toSeconds(head.firstAttemptAt),
          last_attempt_at: toSeconds(head.lastAttemptAt),
          status: head.status,
          failure: head.failure,
          failure_meaning: head.failure && FAILURE_CLASSES[head.failure],
          failure_message: head.failureMessage,
          abandons_at:
            head.firstAttemptAt &&
            Math.floor((head.firstAttemptAt.getTime() + giveUpAfterMs) / 1000),
        }
      : null,
  };
}
