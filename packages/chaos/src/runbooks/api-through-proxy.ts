/**
 * The API through the proxy of `infra/proxy/nginx.conf`, over a real nginx.
 *
 * It checks the proxy's purposes: a file is stored while it comes, a live tail shows calls at once, callers keep their
 * addresses, and the operators' paths stay inside.
 */
import { request, type ClientRequest, type IncomingMessage } from 'node:http';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Database } from '@sluice/database/connection/connection';
import { DEMO } from '@sluice/database/demo/seed-demo';
import { sql } from 'kysely';
import type { Nginx } from './nginx.ts';

const WAIT_MS_MAX = 10_000;
const POLL_INTERVAL_MS = 100;
/** More than the proxy takes of any other call. */
const FILE_PART_SIZE_BYTES = 3 * 1024 * 1024;
const BOUNDARY = 'of-the-form';
/** All of 127.0.0.0/8 is this machine: the proxy hears this caller from another address than its own. */
const CALLER = '127.0.0.2';
const CLAIMED = '203.0.113.9';
const WEBHOOK_NAME = 'Made through the proxy';
/** As the API and intake would understand them, or not. */
const OPERATORS_PATHS = [
  '/metrics',
  '/readyz',
  '/metrics?x',
  '/%6detrics',
  '//readyz',
  '/v1/../metrics',
];

type Ports = Nginx['ports'];

/** @returns the failures; empty if all of it worked. */
export async function tryApiThroughProxy(ports: Ports, database: Database): Promise<string[]> {
  const problems = await Promise.all([
    hidesWhatIsForOperators(ports),
    keepsFilesWhileTheyCome(ports.api, database),
    showsTailAtOnce(ports),
    boundsOtherBodies(ports.api),
    tellsWhoCalls(ports.api, database),
  ]);
  return problems.flat();
}

async function hidesWhatIsForOperators({ intake, api }: Ports): Promise<string[]> {
  const problems: string[] = [];
  for (const port of [intake, api]) {
    for (const path of OPERATORS_PATHS)
      for (const method of ['GET', 'HEAD']) {
        const { status } = await call(port, { method, path });
        if (status !== 404) problems.push(`${method} ${path}: ${status}`);
      }
    const { status } = await call(port, { path: '/livez' });
    if (status !== 200) problems.push(`/livez: ${status}`);
  }
  return problems;
}

/** The sender stops in the middle: the bytes sent must be in Postgres, not in the proxy's own files. */
async function keepsFilesWhileTheyCome(port: number, database: Database): Promise<string[]> {
  const { sent, answer } = open(port, {
    method: 'POST',
    path: '/v1/imports',
    headers: {
      authorization: `Bearer ${DEMO.appKey}`,
      'content-type': `multipart/form-data; boundary=${BOUNDARY}`,
    },
  });
  const field = (name: string, value: string): string =>
    `--${BOUNDARY}\r\nContent-Disposition: form-data; name="${name}"\r\n\r\n${value}\r\n`;
  sent.write(
    field('name', 'through the proxy') +
      field('type', 'event') +
      field('identifier', 'id') +
      `--${BOUNDARY}\r\nContent-Disposition: form-data; name="file"; filename="a.csv"\r\n\r\n` +
      '_svc_name,_svc_customer_id,filling\n',
  );
  const row = `opened,nobody,${'x'.repeat(1_000)}\n`;
  sent.write(row.repeat(FILE_PART_SIZE_BYTES / row.length));
  const isKept = await until(async () => {
    const { rows } = await sql<{ sizeBytes: number }>`
      select coalesce(sum(length(bytes)), 0)::int as "sizeBytes" from import_chunks`.execute(
      database,
    );
    return (rows[0]?.sizeBytes ?? 0) >= FILE_PART_SIZE_BYTES / 2;
  });
  sent.end(`\r\n--${BOUNDARY}--\r\n`);
  const { status, body } = await answer;
  return [
    ...(isKept
      ? []
      : ['the API stores the first part of a file only after the whole file has come']),
    ...(status === 200 ? [] : [`a file: ${status} ${body}`]),
  ];
}

async function showsTailAtOnce({ intake, api }: Ports): Promise<string[]> {
  const { sent } = open(api, {
    path: '/v1/stream',
    headers: { authorization: `Bearer ${DEMO.appKey}` },
  });
  let seen = '';
  sent.on('response', (response) => {
    response.setEncoding('utf8').on('data', (part: string) => (seen += part));
    response.on('error', () => undefined);
  });
  sent.end();
  // A few bytes, and no more behind them: a proxy that gathers lines does not pass them on.
  const isGreeted = await until(async () => seen.includes(': listening'));
  const isSeen = await until(async () => {
    await call(intake, {
      method: 'POST',
      path: '/v1/track',
      headers: { authorization: `Basic ${Buffer.from(`${DEMO.writeKey}:`).toString('base64')}` },
      body: JSON.stringify({ userId: 'watched', event: 'watched' }),
    });
    return seen.includes('"name":"watched"');
  });
  sent.destroy();
  return isGreeted && isSeen
    ? []
    : [`a live tail is gathered: ${JSON.stringify(seen.slice(0, 200))}`];
}

/** The proxy's own answer: the API's would be in JSON. */
async function boundsOtherBodies(port: number): Promise<string[]> {
  const { status, body } = await call(port, {
    method: 'POST',
    path: '/v1/reporting_webhooks',
    headers: { authorization: `Bearer ${DEMO.appKey}`, 'content-type': 'application/json' },
    body: `"${'x'.repeat(2 * 1024 * 1024)}"`,
  });
  return status === 413 && body.includes('nginx') ? [] : [`two megabytes of JSON: ${status}`];
}

async function tellsWhoCalls(port: number, database: Database): Promise<string[]> {
  const { status, body } = await call(port, {
    method: 'POST',
    path: '/v1/reporting_webhooks',
    headers: {
      authorization: `Bearer ${DEMO.appKey}`,
      'content-type': 'application/json',
      'x-forwarded-for': CLAIMED,
    },
    body: JSON.stringify({
      name: WEBHOOK_NAME,
      endpoint: 'https://who.example/',
      events: ['email_sent'],
    }),
  });
  if (status !== 200) return [`a webhook: ${status} ${body}`];
  const { rows } = await sql<{ ip: string }>`
    select ip_addr as ip from audit_logs
     where account_id = ${DEMO.accountId} and object_name = ${WEBHOOK_NAME}`.execute(database);
  return rows[0]?.ip === CALLER ? [] : [`the caller is ${rows[0]?.ip} to the audit log`];
}

interface Call {
  readonly method?: string;
  readonly path: string;
  readonly headers?: Readonly<Record<string, string>>;
}

interface Answer {
  readonly status: number | undefined;
  readonly body: string;
}

/** A path goes out as it is written: `fetch` would mend it. */
function open(port: number, { method = 'GET', path, headers = {} }: Call) {
  const sent: ClientRequest = request({
    host: '127.0.0.1',
    localAddress: CALLER,
    port,
    method,
    path,
    headers,
    agent: false,
  });
  const answer = new Promise<Answer>((resolve) => {
    sent.on('error', (error) => resolve({ status: undefined, body: error.message }));
    sent.on('response', (response: IncomingMessage) => {
      let body = '';
      response.setEncoding('utf8').on('data', (part: string) => (body += part));
      response.on('close', () => resolve({ status: response.statusCode, body }));
    });
  });
  return { sent, answer };
}

function call(port: number, { body, ...rest }: Call & { readonly body?: string }): Promise<Answer> {
  const { sent, answer } = open(port, rest);
  sent.end(body);
  return answer;
}

async function until(isSo: () => Promise<boolean>): Promise<boolean> {
  const deadlineMs = performance.now() + WAIT_MS_MAX;
  while (!(await isSo())) {
    if (performance.now() > deadlineMs) return false;
    await sleep(POLL_INTERVAL_MS);
  }
  return true;
}
