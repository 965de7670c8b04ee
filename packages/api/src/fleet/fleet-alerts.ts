/**
 * Alerts for an operator, from one look at the fleet. They are the alerts of `infra/observability/alerts.yaml` that one
 * look can judge, with the same bounds and runbooks. A test holds the two together. Pure.
 *
 * Prometheus waits some minutes before it wakes an operator; here all alerts show at once.
 */
import type { FleetReading } from './read-fleet.ts';

export interface FleetAlert {
  readonly name: string;
  /** The situation, in words. */
  readonly summary: string;
  /** A page of this repository. */
  readonly runbook: string;
}

interface Rule {
  readonly runbook: string;
  /** Seconds, or a number; a larger value is an alert. */
  readonly above: number;
  /** Undefined if it is not known. */
  readonly valueOf: (fleet: FleetReading) => number | undefined;
  readonly summaryOf: (value: number) => string;
}

const DAY_SECONDS = 86_400;
const EVENTS = 'docs/operations/runbooks/events-are-not-processed.md';
const REDIS = 'docs/operations/runbooks/redis-lost.md';
const OPERATIONS = 'docs/operations/alerts.md';

const inSeconds = (ms: number | null | undefined): number | undefined =>
  ms == null ? undefined : ms / 1_000;

const seconds = (value: number): string => `${Math.round(value)} s`;

/** By the name of the alert. */
export const FLEET_RULES: Readonly<Record<string, Rule>> = {
  EventsAreNotProcessed: {
    runbook: EVENTS,
    above: 60,
    valueOf: ({ shards }) =>
      shards && inSeconds(Math.max(0, ...shards.map(({ oldestAgeMs }) => oldestAgeMs ?? 0))),
    summaryOf: (value) => `the oldest acknowledged event has waited ${seconds(value)} for a worker`,
  },
  DeliveriesAreLate: {
    runbook: EVENTS,
    above: 120,
    valueOf: ({ lanes }) => inSeconds(lanes.healthy.oldestAgeMs),
    summaryOf: (value) => `an endpoint that answers has waited ${seconds(value)} for a delivery`,
  },
  BrokerIsAway: {
    runbook: REDIS,
    above: 30,
    valueOf: ({ processes }) =>
      inSeconds(Math.max(0, ...processes.map(({ report }) => report.spill?.oldestAgeMs ?? 0))),
    summaryOf: (value) =>
      `intake writes calls to its local disk buffer; the oldest is ${seconds(value)} old`,
  },
  BrokerIsFull: {
    runbook: EVENTS,
    above: 0,
    valueOf: ({ broker }) => broker && Number(broker.isFull),
    summaryOf: () => 'the broker gets no more calls, because workers need the remaining memory',
  },
  EnvelopesFailed: {
    runbook: EVENTS,
    above: 0,
    valueOf: ({ broker }) => broker?.failedCount,
    summaryOf: (value) => `${value} commit batches failed, and retries did not help`,
  },
  DeliveriesWillBeAbandoned: {
    runbook: 'docs/operations/runbooks/endpoint-dead-for-days.md',
    above: 5 * DAY_SECONDS,
    valueOf: ({ lanes }) => inSeconds(lanes.failing.oldestAgeMs),
    summaryOf: (value) =>
      `a delivery to a failing endpoint is ${(value / DAY_SECONDS).toFixed(1)} days old; it is abandoned seven days after its first attempt`,
  },
  OperationsAreParked: {
    runbook: EVENTS,
    above: 0,
    valueOf: ({ parkedOperationCount }) => parkedOperationCount,
    summaryOf: (value) => `${value} operations failed because of a bug and are dead-lettered`,
  },
  PurchasesAreSetAside: {
    runbook: OPERATIONS,
    above: 0,
    valueOf: ({ setAsidePurchaseCount }) => setAsidePurchaseCount,
    summaryOf: (value) => `${value} purchases are in manual review`,
  },
  VendorEventsWait: {
    runbook: OPERATIONS,
    above: 1_800,
    valueOf: ({ providerEventOldestAgeMs }) => inSeconds(providerEventOldestAgeMs),
    summaryOf: (value) => `an event of the payment provider has waited ${seconds(value)}`,
  },
  OutboxWaits: {
    runbook: OPERATIONS,
    above: 600,
    valueOf: ({ outboxOldestAgeMs }) => inSeconds(outboxOldestAgeMs),
    summaryOf: (value) =>
      `a mail, or a change for the payment provider, waits for ${seconds(value)}`,
  },
  ClocksDiffer: {
    runbook: OPERATIONS,
    above: 5,
    valueOf: ({ processes }) =>
      inSeconds(Math.max(0, ...processes.map(({ report }) => Math.abs(report.clockAheadMs ?? 0)))),
    summaryOf: (value) => `the clocks of a process and of Postgres are ${seconds(value)} apart`,
  },
};

const SERVICES = ['intake', 'worker', 'api'] as const;

/** In the order of the table; one of no process at all last. */
export function alertsOf(fleet: FleetReading): FleetAlert[] {
  const told = Object.entries(FLEET_RULES).flatMap(([name, rule]) => {
    const value = rule.valueOf(fleet);
    if (value === undefined || value <= rule.above) return [];
    return [{ name, summary: rule.summaryOf(value), runbook: rule.runbook }];
  });
  const missing = SERVICES.filter(
    (service) => !fleet.processes.some((each) => each.service === service),
  ).map((service) => ({
    name: 'ServiceIsGone',
    summary: `no ${service} process has reported within the last minute`,
    runbook: EVENTS,
  }));
  const untold =
    fleet.shards === undefined
      ? [
          {
            name: 'AgesAreNotTold',
            summary:
              'the broker does not answer this API, so the age of the waiting work is not known',
            runbook: EVENTS,
          },
        ]
      : [];
  return [...told, ...missing, ...untold];
}
