/** The console's alerts are equal to Prometheus' alerts. They have the same bounds and runbooks. */
import { existsSync, readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { expect, test } from 'vitest';
import { alertsOf, FLEET_RULES } from '../../src/fleet/fleet-alerts.ts';
import type { FleetReading } from '../../src/fleet/read-fleet.ts';

const ROOT = fileURLToPath(new URL('../../../../', import.meta.url));
const RULES = readFileSync(`${ROOT}infra/observability/alerts.yaml`, 'utf8');

const NOTHING = { webhookCount: 0, deliveryCount: 0, oldestAgeMs: null };
const process = (service: 'intake' | 'worker' | 'api') => ({
  processId: service,
  service,
  version: '1',
  host: 'h',
  pid: 1,
  startedAt: new Date(0),
  beatAgeMs: 0,
  report: { clockAheadMs: 0 },
});
const WELL: FleetReading = {
  readAtMs: 0,
  processes: [process('intake'), process('worker'), process('api')],
  broker: {
    kind: 'redis',
    description: '',
    isDurable: true,
    isFull: false,
    memoryRatio: 0,
    failedCount: 0,
  },
  shards: [{ shard: 0, waitingCount: 0, oldestAgeMs: null, isStuck: false }],
  lanes: { healthy: NOTHING, failing: NOTHING },
  parkedOperationCount: 0,
  setAsidePurchaseCount: 0,
  providerEventOldestAgeMs: null,
  outboxOldestAgeMs: null,
  unknownKeys: { count: 0, firstAt: null, lastAt: null, latest: [] },
};

test('each alert has the bound and the runbook of the rule that wakes somebody', () => {
  for (const [name, { above, runbook }] of Object.entries(FLEET_RULES)) {
    const [, expression = '', page = ''] =
      new RegExp(`alert: ${name}\\n\\s+expr: (.*)\\n(?:.*\\n)*?\\s+runbook: (\\S+)`).exec(RULES) ??
      [];
    const [, bound = ''] = / > ([\d *]+)$/.exec(expression) ?? [];
    const value = bound.split('*').reduce((product, factor) => product * Number(factor), 1);
    expect([name, value, page]).toEqual([name, above, runbook]);
    expect(existsSync(`${ROOT}${runbook}`)).toBe(true);
  }
  expect(Object.keys(FLEET_RULES).length).toBe(11);
});

test('a healthy installation has no alerts', () => {
  expect(alertsOf(WELL)).toEqual([]);
});

test('calls with an unknown key are no fault of the installation, so they cause no alert', () => {
  const at = new Date(0);
  const latest = [{ source: 'pipelines.track', hint: 'rong', count: 1_000, lastAt: at }];
  const unknownKeys = { count: 1_000, firstAt: at, lastAt: at, latest };
  expect(alertsOf({ ...WELL, unknownKeys })).toEqual([]);
});

test.each([
  [
    'EventsAreNotProcessed',
    { shards: [{ shard: 0, waitingCount: 1, oldestAgeMs: 61_000, isStuck: true }] },
  ],
  [
    'DeliveriesAreLate',
    { lanes: { failing: NOTHING, healthy: { ...NOTHING, oldestAgeMs: 121e3 } } },
  ],
  [
    'DeliveriesWillBeAbandoned',
    { lanes: { healthy: NOTHING, failing: { ...NOTHING, oldestAgeMs: 5.1 * 86_400_000 } } },
  ],
  ['BrokerIsFull', { broker: { ...WELL.broker!, isFull: true } }],
  ['EnvelopesFailed', { broker: { ...WELL.broker!, failedCount: 1 } }],
  ['OperationsAreParked', { parkedOperationCount: 1 }],
  ['PurchasesAreSetAside', { setAsidePurchaseCount: 1 }],
  ['VendorEventsWait', { providerEventOldestAgeMs: 1_801_000 }],
  ['OutboxWaits', { outboxOldestAgeMs: 601_000 }],
  ['ServiceIsGone', { processes: WELL.processes.slice(1) }],
  ['AgesAreNotTold', { broker: undefined, shards: undefined }],
  [
    'ClocksDiffer',
    { processes: [...WELL.processes, { ...process('api'), report: { clockAheadMs: -6_000 } }] },
  ],
  [
    'BrokerIsAway',
    {
      processes: [
        ...WELL.processes,
        {
          ...process('intake'),
          report: {
            clockAheadMs: 0,
            spill: { sizeBytes: 1, sizeBytesMax: 2, commitBatchCount: 1, oldestAgeMs: 31_000 },
          },
        },
      ],
    },
  ],
] as const)(
  'the change causes exactly the alert %s, and the alert rules contain it',
  (name, change) => {
    expect(alertsOf({ ...WELL, ...change }).map((alert) => alert.name)).toEqual([name]);
    expect(RULES).toContain(`alert: ${name}\n`);
  },
);
