/**
 * Selects the incoming events of a webhook: the workspace's, or the published messages of its application.
 *
 * It selects by the listed types, names of tracked events, filters, and whether the webhook takes rows of imports and
 * late events.
 *
 * They are matched when an operation is applied and not in SQL, unlike events of the registry. Most calls match no
 * webhook, and they then cost neither a body nor a row.
 *
 * Read by `database/src/delivery/incoming-subscriptions.ts`, asked by `domain/src/reports/incoming-report.ts`.
 */
import { matchesFilters, type AttributeFilter } from './attribute-filter.ts';
import { EVERY_EVENT_TYPE } from './incoming-event.ts';
import type { ReportingEvent } from './reporting-event.ts';

/** The selection of one webhook. */
export interface IncomingSubscription {
  readonly environmentId: number;
  readonly webhookId: number;
  /** The application whose endpoint it is; null for a webhook of the workspace itself. */
  readonly applicationId: string | null;
  /** Types of events, and `*`. */
  readonly events: readonly string[];
  /** Names of tracked events and published messages that are selected; null for all. */
  readonly eventNames: readonly string[] | null;
  /** All of them must hold; null if the webhook has no filter. */
  readonly attributeFilters: readonly AttributeFilter[] | null;
  readonly withImports: boolean;
  readonly withLate: boolean;
  readonly withPersonAttributes: boolean;
}

/** A customer of a workspace, which has endpoints of its own. */
export interface ApplicationKey {
  readonly environmentId: number;
  readonly applicationId: string;
}

/** How an event came. */
export interface EventArrival {
  /** In a file. */
  readonly isImported: boolean;
  /** It happened more than 72 hours before it came. */
  readonly isLate: boolean;
}

/** Older events than this cause no delivery, unless the webhook asks for them (`ingestion-webhooks.md` §8). */
export const LATE_AFTER_MS = 72 * 60 * 60 * 1000;

interface Subscriber extends Omit<IncomingSubscription, 'events' | 'eventNames'> {
  readonly types: ReadonlySet<string>;
  readonly names: ReadonlySet<string> | null;
  readonly filters: readonly AttributeFilter[];
  /** The filters of `filters` that can be checked before the person is known. */
  readonly eventFilters: readonly AttributeFilter[];
}

/** Members of a body with data of the person's row, and `data`, which contains them. */
const ABOUT_PERSON =
  /^data(?:\.(?:identifiers|customer_id|email_address|person_attributes)(?:\.|$)|$)/;

/** The subscriptions of the workspaces of a commit batch. */
export class IncomingSubscriptions {
  readonly #byEnvironment = new Map<number, Subscriber[]>();
  readonly #byApplication = new Map<string, Subscriber[]>();

  /** @param applications - the existing ones, of the ones that messages of the batch name. */
  constructor(
    subscriptions: readonly IncomingSubscription[],
    applications: readonly ApplicationKey[] = [],
  ) {
    for (const application of applications) this.#byApplication.set(textOf(application), []);
    for (const { events, eventNames, ...subscription } of subscriptions) {
      const filters = subscription.attributeFilters ?? [];
      const subscriber = {
        ...subscription,
        types: new Set(events),
        names: eventNames && new Set(eventNames),
        filters,
        eventFilters: filters.filter(({ field }) => !ABOUT_PERSON.test(field)),
      };
      const { environmentId, applicationId } = subscription;
      if (applicationId !== null) {
        this.#byApplication.get(textOf({ environmentId, applicationId }))?.push(subscriber);
        continue;
      }
      const known = this.#byEnvironment.get(environmentId);
      if (known) known.push(subscriber);
      else this.#byEnvironment.set(environmentId, [subscriber]);
    }
  }

  get isEmpty(): boolean {
    return this.#byEnvironment.size === 0 && this.#byApplication.size === 0;
  }

  /** True if a webhook of the workspace's own takes incoming events of any type. */
  has(environmentId: number): boolean {
    return this.#byEnvironment.has(environmentId);
  }

  /** True if there is such an application, with endpoints or without. */
  hasApplication(application: ApplicationKey): boolean {
    return this.#byApplication.has(textOf(application));
  }

  /** The webhooks that receive an event, in any order. */
  subscribersOf(event: ReportingEvent, arrival: EventArrival): number[] {
    const webhookIds: number[] = [];
    const { environmentId, applicationId } = event;
    const subscribers =
      applicationId === undefined
        ? this.#byEnvironment.get(environmentId)
        : this.#byApplication.get(textOf({ environmentId, applicationId }));
    for (const subscriber of subscribers ?? [])
      if (takes(subscriber, event, arrival) && passes(event, subscriber, subscriber.filters))
        webhookIds.push(subscriber.webhookId);
    return webhookIds;
  }

  /** False if no webhook receives an event, for any person. */
  mayBeWanted(event: ReportingEvent, arrival: EventArrival): boolean {
    return (this.#byEnvironment.get(event.environmentId) ?? []).some(
      (subscriber) =>
        takes(subscriber, event, arrival) && passes(event, subscriber, subscriber.eventFilters),
    );
  }
}

const textOf = ({ environmentId, applicationId }: ApplicationKey): string =>
  `${environmentId} ${applicationId}`;

/** Of no workspace. */
export const NO_SUBSCRIPTIONS = new IncomingSubscriptions([]);

function takes(
  { types, names, withImports, withLate }: Subscriber,
  { eventType, metric }: ReportingEvent,
  { isImported, isLate }: EventArrival,
): boolean {
  if (!types.has(eventType) && !types.has(EVERY_EVENT_TYPE)) return false;
  if (isNamed(eventType) && names && !names.has(metric)) return false;
  return (withImports || !isImported) && (withLate || !isLate);
}

/** Types whose `metric` is a word of the client's. Views have theirs from addresses. */
const isNamed = (eventType: string): boolean => eventType === 'event' || eventType === 'message';

/** Filters see the body as the webhook gets it. */
function passes(
  event: ReportingEvent,
  { withPersonAttributes }: Subscriber,
  filters: readonly AttributeFilter[],
): boolean {
  if (filters.length === 0) return true;
  if (!withPersonAttributes || event.content === undefined) return matchesFilters(event, filters);
  return matchesFilters({ ...event, data: { ...event.data, ...event.content } }, filters);
}
