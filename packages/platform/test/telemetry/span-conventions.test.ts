import { endRequest, requestStart } from '@sluice/platform/telemetry/span-conventions';
import type { Span } from '@sluice/platform/telemetry/tracing';
import { expect, test } from 'vitest';

const request = { method: 'GET', route: '/v1/people/:id', traceparent: 'sender', requestId: 'r-1' };

test('a request is named by its method and route, or by its method alone without a route', () => {
  expect(requestStart(request)).toEqual({
    name: 'GET /v1/people/:id',
    kind: 'server',
    parent: 'sender',
    attributes: {
      'http.request.method': 'GET',
      'http.route': '/v1/people/:id',
      'sluice.request_id': 'r-1',
    },
  });
  expect(requestStart({ ...request, route: undefined })).toMatchObject({
    name: 'GET',
    attributes: { 'http.request.method': 'GET' },
  });
});

// Senders choose it, and some choose an address.
test.each(['ada@example.com', 'a b', 'x'.repeat(65), ''])(
  'a request id that may name somebody is left out: %s',
  (requestId) => {
    const { attributes } = requestStart({ ...request, requestId });
    expect(Object.keys(attributes)).toEqual(['http.request.method', 'http.route']);
  },
);

test.each([
  [200, undefined],
  [404, undefined],
  [500, '500'],
  [503, '503'],
])('%s counts as failed: %s', (status, failure) => {
  const ended: unknown[] = [];
  const span = { end: (...how: unknown[]) => void ended.push(how) } as unknown as Span;
  endRequest(span, status, { 'sluice.outcome': 'x' });
  expect(ended).toEqual([
    [{ 'http.response.status_code': status, 'sluice.outcome': 'x' }, failure],
  ]);
});
