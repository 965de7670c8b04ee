/** A replay on the wire: how it is asked for, and how it is shown. */
import { hasMember, where } from '../http/conditions.ts';
import { nameInPortal } from '@sluice/domain/accounts/portal';
import type { ReplayCriteria } from '@sluice/database/replays/replay-log';
import type { Replay } from '@sluice/database/replays/replays';
import {
  isSelectableEventType,
  SELECTABLE_EVENT_TYPES,
} from '@sluice/domain/delivery/reporting-event';
import { z } from 'zod';
import { NOT_BLANK, identifierText, UNIX_SECONDS_MAX } from '../http/fields.ts';
import { SELECTABLE_EVENT_TYPE } from '../openapi/event-type-names.ts';

const RATE_PER_SECOND_DEFAULT = 10;
const RATE_PER_SECOND_MAX = 1_000;
const PERSON_LENGTH_MAX = 1_000;

const unixSeconds = z.int().min(0).max(UNIX_SECONDS_MAX);
const states = z.enum(['delivered', 'abandoned']);

const criteria = z.object({
  since: unixSeconds.optional().meta({ description: 'Unix seconds: logged then or later.' }),
  until: unixSeconds.optional().meta({ description: 'Unix seconds: logged before then.' }),
  event_types: z
    .array(
      z
        .string()
        .refine((type): boolean => isSelectableEventType(type), { error: 'must be an event type' }),
    )
    .min(1)
    .max(SELECTABLE_EVENT_TYPES.length)
    .optional()
    .meta({ items: SELECTABLE_EVENT_TYPE }),
  states: z
    .array(states)
    .min(1)
    .max(2)
    .optional()
    .meta({ description: 'The outcome of the delivery. Absent: both.' }),
  person: z
    .object({
      id: identifierText(PERSON_LENGTH_MAX).min(1).meta(NOT_BLANK).optional(),
      email: identifierText(PERSON_LENGTH_MAX).min(1).meta(NOT_BLANK).optional(),
      svc_id: identifierText(PERSON_LENGTH_MAX).min(1).meta(NOT_BLANK).optional(),
    })
    .refine((person) => Object.values(person).filter((each) => each !== undefined).length === 1, {
      error: 'must hold one of id, email, svc_id',
    })
    .optional()
    .meta({
      ...{ minProperties: 1, maxProperties: 1 },
      description: 'Whom the event was about: one of the identifiers that its body names.',
    }),
});

/** The body that asks for one. */
export const newReplay = criteria
  .extend({
    rate_per_second: z.int().min(1).max(RATE_PER_SECOND_MAX).default(RATE_PER_SECOND_DEFAULT).meta({
      description:
        'Requests a second, besides the requests for new events. If the rate limit of the webhook is lower, it counts for each of the two.',
    }),
    dry_run: z
      .boolean()
      .default(false)
      .meta({ description: 'Only counts the deliveries that would be sent.' }),
  })
  .refine(
    (body) =>
      [body.since, body.until, body.event_types, body.states, body.person].some(
        (each) => each !== undefined,
      ),
    {
      error: 'must have at least one of since, until, event_types, states and person',
    },
  )
  .meta({
    id: 'NewReplay',
    description:
      'All that is given must hold, and at least one of since, until, event_types, states and person is given.',
    ...where({ anyOf: ['since', 'until', 'event_types', 'states', 'person'].map(hasMember) }),
    requestExamples: [{ since: 1_767_225_600, states: ['abandoned'], dry_run: true }],
  });

/** One as it stands. */
export const replay = z
  .object({
    id: z.int(),
    state: z.enum(['running', 'done', 'cancelled']),
    failing: z.boolean().meta({ description: 'It waits for `next_probe_at`.' }),
    next_probe_at: z.int().nullable(),
    criteria,
    rate_per_second: z.int(),
    total: z
      .int()
      .nullable()
      .meta({ description: 'Counted when it was requested; null if there are too many to count.' }),
    delivered: z.int(),
    abandoned: z.int(),
    created_at: z.int().meta({ description: 'Unix seconds.' }),
    created_by: z.string().meta({ description: 'The name of the key.' }),
    ended_at: z.int().nullable(),
  })
  .meta({ id: 'Replay' });

/** The request's criteria, as the statements want them. */
export function criteriaOf({
  since,
  until,
  event_types: eventTypes,
  states: wanted,
  person,
}: z.infer<typeof criteria>): ReplayCriteria {
  const [identifier] = (['id', 'email', 'svc_id'] as const).flatMap((kind) => {
    const value = person?.[kind];
    return value === undefined ? [] : [{ kind, value }];
  });
  return {
    since,
    until,
    eventTypes,
    states: wanted && [...new Set(wanted)],
    person: identifier,
  };
}

const toSeconds = (date: Date): number => Math.floor(date.getTime() / 1000);

const isToldOf = (row: Replay, portal: { readonly label: string } | null): true | undefined =>
  !portal || row.createdBy === nameInPortal(portal.label) || undefined;

/** @param portal - of a caller in the portal. Requester and subject are shown if the link itself made the request. */
export const toWire = (
  row: Replay,
  portal: { readonly label: string } | null,
): z.infer<typeof replay> => ({
  id: row.replayId,
  state: row.state,
  failing: row.isFailing && row.state === 'running',
  next_probe_at: row.nextProbeAt && row.state === 'running' ? toSeconds(row.nextProbeAt) : null,
  criteria: {
    since: row.criteria.since,
    until: row.criteria.until,
    event_types: row.criteria.eventTypes && [...row.criteria.eventTypes],
    states: row.criteria.states && [...row.criteria.states],
    person: isToldOf(row, portal) &&
      row.criteria.person && { [row.criteria.person.kind]: row.criteria.person.value },
  },
  rate_per_second: row.ratePerSecond,
  total: row.total,
  delivered: row.delivered,
  abandoned: row.abandoned,
  created_at: toSeconds(row.createdAt),
  created_by: isToldOf(row, portal) ? row.createdBy : '',
  ended_at: row.endedAt && toSeconds(row.endedAt),
});
