import {
  parseMetric,
  parsePushEvent,
  parseUnsubscribe,
} from '@sluice/domain/track/track-v1-messages';
import { describe, expect, test } from 'vitest';
import {
  BASE,
  CONTEXT,
  MADE_ID,
  onlyOperation,
  operationOf,
  refusals,
  warnings,
} from '../support/parsing.ts';

describe('metrics', () => {
  test('are reported of a delivery', () => {
    const body = {
      delivery_id: 'd1',
      metric: 'bounced',
      timestamp: 1_714_559_999,
      recipient: 'ada@example.com',
      reason: 'full',
      href: 'https://x.example',
      channel: 'email',
      metadata: { action_name: 'cta', action_value: 'go' },
    };
    expect(onlyOperation(parseMetric(body, CONTEXT))).toStrictEqual({
      ...BASE,
      type: 'metric.report',
      deliveryId: 'd1',
      metric: 'bounced',
      occurredAtMs: 1_714_559_999_000,
      eventId: MADE_ID,
      channel: 'email',
      recipient: 'ada@example.com',
      reason: 'full',
      href: 'https://x.example',
      actionName: 'cta',
      actionValue: 'go',
    });
  });

  test.each([
    'bounced',
    'clicked',
    'converted',
    'deferred',
    'delivered',
    'dropped',
    'opened',
    'spammed',
  ])('%s is one', (metric) => {
    expect(parseMetric({ delivery_id: 'd1', metric }, CONTEXT).operations).toHaveLength(1);
  });

  test('others are refused, and so are other channels', () => {
    expect(refusals(parseMetric({ delivery_id: 'd1', metric: 'lost' }, CONTEXT))).toEqual([
      'invalid metric',
    ]);
    expect(refusals(parseMetric({}, CONTEXT))).toEqual(['required delivery_id', 'required metric']);
    expect(
      refusals(parseMetric({ delivery_id: 'd1', metric: 'opened', channel: 'fax' }, CONTEXT)),
    ).toEqual(['invalid channel']);
  });

  test('free texts are mended, not refused, and bounded', () => {
    const parsed = parseMetric({ delivery_id: 'd1', metric: 'bounced', reason: 'a\0' }, CONTEXT);
    expect(operationOf(parsed, 'metric.report').reason).toBe('a\ufffd');
    expect(warnings(parsed)).toEqual(['characters_replaced reason']);
    expect(
      refusals(
        parseMetric({ delivery_id: 'd1', metric: 'bounced', reason: 'x'.repeat(2_001) }, CONTEXT),
      ),
    ).toEqual(['too_long reason']);
  });

  test('of the older push route are about push', () => {
    const body = { delivery_id: 'd1', event: 'opened', device_id: 'tok', timestamp: 1_714_559_999 };
    expect(onlyOperation(parsePushEvent(body, CONTEXT))).toStrictEqual({
      ...BASE,
      type: 'metric.report',
      deliveryId: 'd1',
      metric: 'opened',
      occurredAtMs: 1_714_559_999_000,
      eventId: MADE_ID,
      channel: 'push',
      deviceToken: 'tok',
    });
    expect(refusals(parsePushEvent({ ...body, event: 'bounced' }, CONTEXT))).toEqual([
      'invalid event',
    ]);
  });
});

describe('unsubscribe', () => {
  test('names a delivery, and its field unsubscribe must be true', () => {
    expect(onlyOperation(parseUnsubscribe('d1', { unsubscribe: true }, CONTEXT))).toStrictEqual({
      ...BASE,
      type: 'delivery.unsubscribe',
      deliveryId: 'd1',
    });
    expect(refusals(parseUnsubscribe('d1', {}, CONTEXT))).toEqual(['required unsubscribe']);
    expect(refusals(parseUnsubscribe('d1', { unsubscribe: false }, CONTEXT))).toEqual([
      'invalid unsubscribe',
    ]);
    expect(
      refusals(parseUnsubscribe('d\0', { unsubscribe: true }, { ...CONTEXT, hasEscapes: false })),
    ).toEqual(['invalid delivery_id']);
  });
});
