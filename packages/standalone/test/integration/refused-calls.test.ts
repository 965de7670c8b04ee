/** Calls that are refused, over every transport: the workspace's owner finds them in the issues log. */
import { gzipSync } from 'node:zlib';
import { DEMO } from '@sluice/database/demo/seed-demo';
import { afterAll, beforeAll, expect, test, vi } from 'vitest';
import { startFleet, WAIT, type Fleet } from './fleet-under-test.ts';

const basic = (text: string) => `Basic ${Buffer.from(text).toString('base64')}`;
const PIPELINES = { authorization: basic(`${DEMO.writeKey}:`) };
const TRACK = { authorization: basic(`${DEMO.siteId}:${DEMO.apiKey}`) };
const STRICT = { 'x-strict-mode': 'TRUE' };
const GZIP = { 'content-encoding': 'gzip' };
const CALL = '{"type":"track","userId":"ann","event":"seen"}\n';

let fleet: Fleet;
beforeAll(async () => {
  fleet = await startFleet();
});
afterAll(() => fleet.close());

async function send(
  method: string,
  path: string,
  headers: Readonly<Record<string, string>>,
  body: string | Buffer,
) {
  const answer = await fetch(`${fleet.intake.url}${path}`, {
    method,
    headers: { 'content-type': 'application/json', ...headers },
    body: new Uint8Array(Buffer.from(body)),
  });
  return { status: answer.status, text: await answer.text() };
}

interface LoggedIssue {
  readonly source: string;
  readonly code: string;
  readonly field: string | null;
  readonly credential_id: number | null;
}

async function logged(): Promise<LoggedIssue[]> {
  const answer = await fetch(`${fleet.api.url}/v1/ingestion_issues?limit=1000`, {
    headers: { authorization: `Bearer ${DEMO.appKey}` },
  });
  return ((await answer.json()) as { ingestion_issues: LoggedIssue[] }).ingestion_issues;
}

const withTrailing = Buffer.concat([gzipSync(CALL), Buffer.from([0])]);

/** The request, the status, a part of the answer, and the source, code and field in the log. */
const REFUSED: readonly (readonly [
  string,
  readonly [method: string, path: string, headers: Record<string, string>, body: string | Buffer],
  number,
  string,
  readonly [string, string, string | null],
])[] = [
  [
    'a call in strict mode',
    ['POST', '/v1/track', { ...PIPELINES, ...STRICT }, '{"userId":"ann"}'],
    400,
    'event is required',
    ['pipelines.track', 'required', 'event'],
  ],
  [
    'a call in strict mode whose key is in its body, as a browser sends it',
    [
      'POST',
      '/v1/g',
      { ...STRICT, 'content-type': 'text/plain' },
      `{"userId":"ann","writeKey":"${DEMO.writeKey}"}`,
    ],
    400,
    'groupId is required',
    ['pipelines.group', 'required', 'groupId'],
  ],
  [
    'a batch in strict mode',
    ['POST', '/v1/batch', { ...PIPELINES, ...STRICT }, '{"batch":[{"type":"alias"}]}'],
    400,
    'previousId',
    ['pipelines.batch', 'required', 'previousId'],
  ],
  [
    'a body in strict mode with bytes behind its gzip',
    ['POST', '/v1/page', { ...PIPELINES, ...STRICT, ...GZIP }, withTrailing],
    400,
    'bytes follow its end',
    ['pipelines.page', 'invalid_encoding', null],
  ],
  [
    'a call of Track v1',
    ['PUT', '/api/v1/customers/ann', TRACK, '{"email":{}}'],
    400,
    'email',
    ['track.v1.identify', 'invalid', 'email'],
  ],
  [
    'a path of Track v1 that is percent-encoded Windows-1252',
    ['DELETE', '/api/v1/customers/caf%E9', TRACK, ''],
    400,
    'percent-encoding',
    ['track.v1.delete', 'invalid_encoding', null],
  ],
  [
    'an item of a batch of Track v2',
    ['POST', '/v2/batch', TRACK, '{"batch":[{"type":"person","action":"fly"}]}'],
    400,
    'action',
    ['track.v2.batch', 'unsupported', 'action'],
  ],
  [
    'an unsubscription with credentials',
    ['POST', '/unsubscribe/d-1', TRACK, '{"unsubscribe":"perhaps"}'],
    400,
    'unsubscribe must be true',
    ['track.v1.unsubscribe', 'invalid', 'unsubscribe'],
  ],
  [
    'a line of a stream in strict mode',
    ['POST', '/v1/stream', { ...PIPELINES, ...STRICT }, `${CALL}{"type":"screen"}\n`],
    200,
    '"end":"rejected"',
    ['pipelines.stream', 'required', 'userId'],
  ],
  [
    'a stream with bytes behind its gzip',
    ['POST', '/v1/stream', { ...PIPELINES, ...STRICT, ...GZIP }, withTrailing],
    200,
    '"end":"invalid_encoding"',
    ['pipelines.stream', 'invalid_encoding', null],
  ],
  [
    'a line of a stream of Track',
    ['POST', '/v1/stream', TRACK, '{"type":"person"}\n'],
    200,
    '"refused":1',
    ['track.v2.stream', 'required', 'action'],
  ],
  [
    'a stream of Track in an encoding that is not read',
    ['POST', '/v1/stream', { ...TRACK, 'content-encoding': 'br' }, CALL],
    400,
    'use gzip, deflate',
    ['track.v2.stream', 'invalid_encoding', null],
  ],
  [
    'a stream that begins at no line',
    ['POST', '/v1/stream?line=0', PIPELINES, CALL],
    400,
    'line must be a positive integer',
    ['pipelines.stream', 'invalid', 'line'],
  ],
];

test.concurrent.each(REFUSED)('%s', async (_, call, status, told, [source, code, field]) => {
  const answer = await send(...call);
  expect(answer.status).toBe(status);
  expect(answer.text).toContain(told);
  await vi.waitFor(async () => {
    expect(await logged()).toContainEqual(
      expect.objectContaining({ source, code, field, credential_id: expect.any(Number) }),
    );
  }, WAIT);
});
