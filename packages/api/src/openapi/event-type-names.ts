/**
 * Names of event types in the description: two components that each list of types names.
 *
 * Written out at each field, they would be a twentieth of the client's types. The fields check the names themselves.
 */
import { SELECTABLE_EVENT_TYPES } from '@sluice/domain/delivery/reporting-event';

/** A webhook that lists it gets every type. */
const EVERY_TYPE = '*';

export const EVENT_TYPE_NAMES = {
  ListableEventType: {
    anyOf: [{ $ref: '#/components/schemas/SelectableEventType' }, { const: EVERY_TYPE }],
    description: 'An event type, or `*` for all of them.',
  },
  SelectableEventType: { type: 'string', enum: [...SELECTABLE_EVENT_TYPES] },
} as const;

const named = (name: keyof typeof EVENT_TYPE_NAMES) =>
  ({ $ref: `#/components/schemas/${name}` }) as const;

/** As a webhook lists it. */
export const LISTABLE_EVENT_TYPE = named('ListableEventType');
/** As a delivery has it. */
export const SELECTABLE_EVENT_TYPE = named('SelectableEventType');
