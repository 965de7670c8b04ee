import { createHmac } from 'node:crypto';
import type { ReportingEvent } from '@sluice/domain/delivery/reporting-event';
import {
  deliveryBody,
  deliveryHeaders,
  secretContext,
  stringToSign,
} from '@sluice/domain/delivery/webhook';
import { describe, expect, test } from 'vitest';

const event: ReportingEvent = {
  environmentId: 1,
  eventId: '01J8Z5N3W6Q2RS8T4V7X9YZABC',
  eventType: 'customer_subscribed',
  objectType: 'customer',
  metric: 'subscribed',
  occurredAtMs: 1_692_633_432_999,
  data: {
    customer_id: '42',
    email_address: 'a@example.com',
    identifiers: { id: '42', email: 'a@example.com', svc_id: 'a3000001' },
  },
};

describe('the signed text', () => {
  test('is the published vector when the key is used as text', () => {
    const key = '755781b5e03a973f3405a85474d5a032a60fd56fabaad66039b12eadd83955fa';
    const signature = createHmac('sha256', key)
      .update(stringToSign(1_692_633_432, '{"key": "value"}'))
      .digest('hex');
    expect(signature).toBe('d7c655389bb364d3e8bdbb6ec18a7f1b6cf91f39bba647554ada78aa61de37b9');
  });
});

// Security: a key's use is a part of its encryption. With another text no stored key would open.
test('a signing key is encrypted for its workspace and for no other', () => {
  expect([1, 11].map(secretContext)).toEqual(['environment 1', 'environment 11']);
});

describe('the body of a delivery', () => {
  test('has the five members of the delivery format, the time in whole seconds', () => {
    expect(JSON.parse(deliveryBody(event, false))).toEqual({
      event_id: event.eventId,
      object_type: 'customer',
      metric: 'subscribed',
      timestamp: 1_692_633_432,
      data: event.data,
    });
  });

  test('has the content only if the webhook asked for it', () => {
    const withContent: ReportingEvent = { ...event, content: { content: 'Hello' } };
    expect(JSON.parse(deliveryBody(withContent, false))).toMatchObject({ data: event.data });
    expect(JSON.parse(deliveryBody(withContent, false))).not.toHaveProperty('data.content');
    expect(JSON.parse(deliveryBody(withContent, true))).toMatchObject({
      data: { ...event.data, content: 'Hello' },
    });
  });

  test('can be kept as text with any data of a client', () => {
    const hostile: ReportingEvent = { ...event, data: { note: 'a\u0000b\ud800' } };
    const body = deliveryBody(hostile, false);
    expect(body.isWellFormed()).toBe(true);
    expect(body).not.toContain('\0');
    expect(JSON.parse(body)).toMatchObject({ data: { note: 'a\u0000b\ud800' } });
  });
});

test('an attempt carries its own timestamp and signature and names us', () => {
  expect(deliveryHeaders(1_692_633_432, { signature: 'abc' })).toEqual({
    'content-type': 'application/json',
    'user-agent': expect.stringContaining('Sluice'),
    'x-svc-timestamp': '1692633432',
    'x-svc-signature': 'abc',
    // Headers that receivers written for Customer.io read.
    'x-cio-timestamp': '1692633432',
    'x-cio-signature': 'abc',
  });
});
