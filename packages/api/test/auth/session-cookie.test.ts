/** The cookie of a session: its name and flags by protocol, and the visits that may use it. */
import { expect, test } from 'vitest';
import {
  accountOfCookie,
  newSessionCookie,
  readSessionCookie,
  refuseVisit,
  setCookieHeader,
  type Visit,
} from '../../src/auth/session-cookie.ts';

const visit = (change: Partial<Visit> = {}): Visit => ({
  method: 'POST',
  protocol: 'https',
  host: 'console.example',
  headers: { origin: 'https://console.example', 'sec-fetch-site': 'same-origin' },
  ...change,
});

test('by HTTPS the cookie is of this host alone and never sent in the clear', () => {
  expect(setCookieHeader(visit(), 'text')).toBe(
    '__Host-sluice=text; Path=/; Max-Age=604800; HttpOnly; SameSite=Strict; Secure',
  );
  expect(setCookieHeader(visit())).toContain('Max-Age=0');
});

test('by HTTP the name has the port, so that two installations of a machine keep their sessions', () => {
  const name = (host: string) =>
    setCookieHeader(visit({ protocol: 'http', host }), 'text').split('=')[0];
  expect(['127.0.0.1:8090', '127.0.0.1:18090', 'localhost'].map(name)).toEqual([
    'sluice-8090',
    'sluice-18090',
    'sluice-80',
  ]);
});

test('an HTTPS request ignores a cookie that was set over HTTP', () => {
  const text = newSessionCookie(7);
  const read = (cookie: string) => readSessionCookie(visit({ headers: { cookie } }));
  expect(read(`a=b; __Host-sluice=${text}; c=d`)).toBe(text);
  expect(read(`sluice-443=${text}`)).toBeUndefined();
  expect(read(`x__Host-sluice=${text}`)).toBeUndefined();
  expect(read('')).toBeUndefined();
});

test('each new cookie is unique and names its account, and a malformed text names no account', () => {
  expect(accountOfCookie(newSessionCookie(7))).toBe(7);
  expect(new Set(Array.from({ length: 100 }, () => newSessionCookie(7))).size).toBe(100);
  for (const text of [
    '',
    '7',
    `7.${'a'.repeat(42)}`,
    `07.${'a'.repeat(43)}`,
    `9007199254740993.${'a'.repeat(43)}`,
    `-1.${'a'.repeat(43)}`,
  ])
    expect(accountOfCookie(text)).toBeUndefined();
});

test.each<[string, Partial<Visit>, boolean]>([
  ['the page itself', {}, true],
  ['a read from the address line', { method: 'GET', headers: { 'sec-fetch-site': 'none' } }, true],
  ['a read by an old browser', { method: 'GET', headers: {} }, true],
  ['a read by another site', { method: 'GET', headers: { 'sec-fetch-site': 'cross-site' } }, false],
  ['another port', { headers: { origin: 'https://console.example:8443' } }, false],
  ['HTTP to HTTPS', { headers: { origin: 'http://console.example' } }, false],
  ['no origin', { headers: { 'sec-fetch-site': 'same-origin' } }, false],
  ['a name that begins like ours', { headers: { origin: 'https://console.example.evil' } }, false],
  [
    'this machine by HTTP',
    { protocol: 'http', host: '[::1]:8090', headers: { origin: 'http://[::1]:8090' } },
    true,
  ],
  [
    'another machine by HTTP',
    { protocol: 'http', headers: { origin: 'http://console.example' } },
    false,
  ],
])('%s', (_name, change, isAllowed) => {
  expect(refuseVisit(visit(change)) === undefined).toBe(isAllowed);
});
