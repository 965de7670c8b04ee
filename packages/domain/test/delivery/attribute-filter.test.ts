import { expect, test } from 'vitest';
import { matchesFilters, type AttributeFilter } from '../../src/delivery/attribute-filter.ts';
import type { ReportingEvent } from '../../src/delivery/reporting-event.ts';

const event: ReportingEvent = {
  environmentId: 1,
  eventId: 'e1',
  eventType: 'email_clicked',
  objectType: 'email',
  metric: 'clicked',
  occurredAtMs: 0,
  data: { campaign_id: 7, customer_id: '', machine: false, href: null, identifiers: { id: '42' } },
};

test.each<[boolean, AttributeFilter]>([
  [true, { field: 'object_type', operator: 'eq', values: ['sms', 'email'] }],
  [false, { field: 'object_type', operator: 'eq', values: ['sms'] }],
  [true, { field: 'metric', operator: 'eq', values: ['clicked'] }],
  [true, { field: 'data.campaign_id', operator: 'eq', values: ['7'] }],
  [true, { field: 'data.machine', operator: 'eq', values: ['false'] }],
  [true, { field: 'data.customer_id', operator: 'eq', values: [''] }],
  [true, { field: 'data.identifiers.id', operator: 'eq', values: ['42'] }],
  [false, { field: 'data.identifiers', operator: 'eq', values: ['[object Object]'] }],
  [false, { field: 'data.href', operator: 'eq', values: ['null'] }],
  [true, { field: 'data.href', operator: 'not_eq', values: ['null'] }],
  [false, { field: 'data.campaign_id', operator: 'not_eq', values: ['1', '7'] }],
  [true, { field: 'data.unknown', operator: 'not_eq', values: ['x'] }],
  [true, { field: 'data.identifiers', operator: 'exists' }],
  [false, { field: 'data.href', operator: 'exists' }],
  [true, { field: 'data.href', operator: 'not_exists' }],
  [false, { field: 'data.campaign_id.deeper', operator: 'exists' }],
  // Security: nothing that every object has counts as a member.
  [false, { field: 'data.constructor', operator: 'exists' }],
  [false, { field: '__proto__', operator: 'exists' }],
  [false, { field: '', operator: 'exists' }],
])('%s for %j', (expected, filter) => {
  expect(matchesFilters(event, [filter])).toBe(expected);
});

test('all of them must hold, and none is true of everything', () => {
  const holds: AttributeFilter = { field: 'metric', operator: 'exists' };
  expect(matchesFilters(event, [])).toBe(true);
  expect(matchesFilters(event, [holds, { field: 'metric', operator: 'not_exists' }])).toBe(false);
});
