/** svc_ids and the registry of reporting events. */
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { isIncomingEventType } from '../../src/delivery/incoming-event.ts';
import {
  isMessageChannel,
  isOwnEventType,
  isReportingEventType,
  REPORTING_EVENT_TYPES,
  SELECTABLE_EVENT_TYPES,
  splitOwnEventType,
} from '../../src/delivery/reporting-event.ts';
import { objectNumberOf, personIdOf, svcId, svcObjectId } from '../../src/values/svc-id.ts';

describe('svc_id', () => {
  it('is the number written differently, and only its one spelling is read', () => {
    expect(svcId(1)).toBe('a3000001');
    fc.assert(
      fc.property(fc.integer({ min: 1, max: 2 ** 52 - 1 }), (number) => {
        expect(personIdOf(svcId(number))).toBe(number);
        expect(objectNumberOf(svcObjectId(number))).toBe(number);
      }),
    );
    for (const text of [
      '',
      'a3',
      'a3000000',
      'a30000001',
      'A3000001',
      'a300000A',
      'a3-00001',
      'a31',
      'ob000001',
      `a3${'f'.repeat(14)}`,
    ]) {
      expect(personIdOf(text)).toBeUndefined();
    }
  });
});

describe('reporting event types', () => {
  it('are the 72 of ingestion-conventions.md §4.1', () => {
    expect(REPORTING_EVENT_TYPES).toHaveLength(72);
    expect(new Set(REPORTING_EVENT_TYPES).size).toBe(72);
    expect(isReportingEventType('in_app_clicked')).toBe(true);
    expect(isReportingEventType('slack_opened')).toBe(false);
    expect(isMessageChannel('customer')).toBe(false);
    expect(isMessageChannel('toString')).toBe(false);
  });

  it('and our own are each a family and a metric', () => {
    const own = SELECTABLE_EVENT_TYPES.filter(isOwnEventType);
    const incoming = SELECTABLE_EVENT_TYPES.filter(isIncomingEventType);
    expect(incoming).toEqual(['event', 'page', 'screen', 'identify', 'group', 'delete', 'message']);
    expect(own).toHaveLength(
      SELECTABLE_EVENT_TYPES.length - REPORTING_EVENT_TYPES.length - incoming.length,
    );
    for (const type of own) {
      const { family, metric } = splitOwnEventType(type);
      expect(`${family}_${metric}`).toBe(type);
    }
  });
});
