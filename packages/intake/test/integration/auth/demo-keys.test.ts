/**
 * The demo's keys are in the documentation: they are refused for a call from elsewhere, with the reason in the answer.
 */
import { request, type IncomingMessage } from 'node:http';
import { text } from 'node:stream/consumers';
import { gzipSync } from 'node:zlib';
import { DEMO } from '@sluice/database/demo/seed-demo';
import { FORWARDING_HEADERS } from '@sluice/domain/accounts/demo-calls';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import {
  PIPELINES_AUTHORIZATION,
  startIntakeUnderTest,
  type IntakeUnderTest,
} from '../support/intake-under-test.ts';
import { eventsNamed, expectUnharmed } from '../support/unharmed.ts';

let intake: IntakeUnderTest;
beforeAll(async () => {
  intake = await startIntakeUnderTest();
});
afterAll(() => intake.close());

const basic = (user: string, password = '') =>
  `Basic ${Buffer.from(`${user}:${password}`).toString('base64')}`;
const DEMO_PIPELINES = basic(DEMO.writeKey);
const DEMO_TRACK = basic(DEMO.siteId, DEMO.apiKey);

interface Call {
  readonly method: string;
  readonly path: string;
  readonly headers: Record<string, string>;
  readonly body?: string | Buffer;
}
const post = (
  path: string,
  authorization: string,
  body: string | Buffer,
  headers: Record<string, string> = {},
): Call => ({
  method: 'POST',
  path,
  headers: { ...(authorization !== '' && { authorization }), ...headers },
  body,
});

const EVENT = '{"type":"track","userId":"u","event":"demo"}';
const KEY_IN_BODY = EVENT.replace('{', `{"writeKey":"${DEMO.writeKey}",`);
const LARGE = `{"batch":[${Array(2_000).fill(EVENT).join(',')},{"type":"identify","userId":"u"}]}`;
const TRACK_LINE = '{"type":"person","action":"event","identifiers":{"id":"u"},"name":"demo"}\n';
const GZIP = { 'content-encoding': 'gzip' };
const FAST = post('/v1/track', DEMO_PIPELINES, EVENT);
const CALLS: Readonly<Record<string, Call>> = {
  'a call of an event': FAST,
  'a call with a Bearer token': post('/v1/track', `Bearer ${DEMO.writeKey}`, EVENT),
  'a call with its key in the body': post('/v1/track', '', KEY_IN_BODY),
  'an identify': post('/v1/identify', DEMO_PIPELINES, '{"userId":"u"}'),
  'a call in strict mode': post('/v1/track', DEMO_PIPELINES, EVENT, { 'x-strict-mode': '1' }),
  'a batch': post('/v1/batch', DEMO_PIPELINES, `{"batch":[${EVENT}]}`),
  'a large batch': post('/v1/batch', DEMO_PIPELINES, LARGE),
  'a large batch in gzip': post('/v1/batch', DEMO_PIPELINES, gzipSync(LARGE), GZIP),
  'a stream': post('/v1/stream', DEMO_PIPELINES, `${EVENT}\n`),
  'a stream of the Track API': post('/v1/stream', DEMO_TRACK, TRACK_LINE),
  'a call of the Track API': post('/api/v1/customers/u/events', DEMO_TRACK, '{"name":"demo"}'),
  'the test of credentials': {
    method: 'GET',
    path: '/auth',
    headers: { authorization: DEMO_TRACK },
  },
};
const PROXY = { 'x-forwarded-for': '203.0.113.9' };
const ELSEWHERE: Readonly<Record<string, Record<string, string>>> = {
  'through a proxy': PROXY,
  'through a proxy that names no client': { 'x-forwarded-for': '' },
  ...Object.fromEntries(
    FORWARDING_HEADERS.map((name) => [`through a proxy that adds ${name}`, { [name]: 'x' }]),
  ),
  'for a name that leads here': { host: 'rebound.example' },
  'for a name that begins like this machine': { host: '127.0.0.1.example:80' },
};
const HERE: readonly Record<string, string>[] = [
  {},
  { host: 'localhost:8080' },
  { host: '[::1]' },
  { ...PROXY, host: 'Demo.example:1' },
];

async function send({ method, path, headers, body }: Call, more: Record<string, string>) {
  const sender = request(`${intake.url}${path}`, { method, headers: { ...headers, ...more } });
  sender.end(body);
  const response = await new Promise<IncomingMessage>((resolve, reject) =>
    sender.once('response', resolve).once('error', reject),
  );
  return { status: response.statusCode, text: await text(response) };
}

describe.each(Object.entries(CALLS))('%s', (_, call) => {
  test.each(Object.entries(ELSEWHERE))(
    '%s is refused, and the answer names DEMO_HOSTS',
    async (__, more) => {
      const answer = await send(call, more);
      expect(answer.status).toBe(401);
      expect(answer.text).toContain('DEMO_HOSTS');
    },
  );

  test('for this machine, or for a host that is named, is taken', async () => {
    for (const more of HERE) {
      const answer = await send(call, more);
      expect(answer.status).toBe(200);
      expect(answer.text).not.toContain('DEMO_HOSTS');
    }
  });
});

test('pages for browsers with the demo’s key are not there for others', async () => {
  const page = { method: 'GET', path: `/v1/projects/${DEMO.writeKey}/settings`, headers: {} };
  expect((await send(page, {})).status).toBe(200);
  expect((await send(page, { host: 'rebound.example' })).status).toBe(404);
});

test('refused calls store no event, and another key may come from anywhere', async () => {
  await expectUnharmed(intake);
  const before = eventsNamed(intake, 'demo').length;
  for (const more of Object.values(ELSEWHERE)) await send(FAST, more);
  await expectUnharmed(intake);
  expect(eventsNamed(intake, 'demo')).toHaveLength(before);
  const other = post('/v1/track', PIPELINES_AUTHORIZATION, EVENT);
  for (const more of Object.values(ELSEWHERE)) expect((await send(other, more)).status).toBe(200);
  await expectUnharmed(intake);
  expect(eventsNamed(intake, 'demo')).toHaveLength(before + Object.keys(ELSEWHERE).length);
});
