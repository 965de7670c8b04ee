import { expect, test } from 'vitest';
import { FORWARDING_HEADERS } from '@sluice/domain/accounts/demo-calls';
import { refuseDemo } from '../../src/auth/demo-guard.ts';

const demo = { authorization: 'Bearer sa_sandbox_demo' };
const appKey = { authorization: 'bearer demo_app_key' };

test.each([
  ['this machine by name', { ...demo, host: 'localhost:8090' }, true],
  ['this machine by address', { ...demo, host: '127.0.0.1:8090' }, true],
  ['this machine by IPv6', { ...appKey, host: '[::1]:8090' }, true],
  ['a name that leads here', { ...demo, host: 'rebound.example:8090' }, false],
  ['a name that begins like this machine', { ...demo, host: '127.0.0.1.example' }, false],
  ['no host', { ...appKey }, false],
  ['a tunnel', { ...appKey, host: 'localhost:8090', 'x-forwarded-for': '203.0.113.9' }, false],
  [
    'a host that is named',
    { ...demo, host: 'Demo.example', 'x-forwarded-for': '203.0.113.9' },
    true,
  ],
  ['another token', { authorization: 'Bearer sa_live_other', host: 'rebound.example' }, true],
  ['no token', { host: 'rebound.example' }, true],
])('a call by %s', (_, headers, isLetIn) => {
  const refusal = refuseDemo(headers, ['demo.example']);
  expect(refusal === undefined).toBe(isLetIn);
  if (refusal) expect(refusal.message).toContain('DEMO_HOSTS');
});

test.each(FORWARDING_HEADERS)('a call by a proxy that adds %s is refused', (name) => {
  expect(refuseDemo({ ...demo, host: 'localhost', [name]: '' }, [])?.code).toBe('forbidden');
});

test('the demo’s token is refused in the exchange too', () => {
  const headers = { host: 'rebound.example' };
  expect(refuseDemo(headers, [], 'sa_sandbox_demo_invoiced')?.code).toBe('forbidden');
});
