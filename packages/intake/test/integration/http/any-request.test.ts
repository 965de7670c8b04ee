/**
 * Intake answers any request as documented and lives.
 *
 * The worker can apply every call that it takes. Random requests (`any-request.ts`) go to the real processes over real
 * sockets.
 */
import { connect } from 'node:net';
import { fileURLToPath } from 'node:url';
import type { Database } from '@sluice/database/connection/connection';
import { DEMO, seedDemoWorkspace } from '@sluice/database/demo/seed-demo';
import { createTestDatabase } from '@sluice/database/testing/testing';
import { ISSUE_CODES } from '@sluice/domain/operations/issue';
import {
  startServiceUnderTest,
  type ServiceUnderTest,
} from '@sluice/platform/testing/service-under-test';
import { testRedisUrl, uniquePrefix } from '@sluice/platform/testing/testing';
import fc from 'fast-check';
import { sql } from 'kysely';
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest';
import { routes } from '../../../src/calls/calls.ts';
import { TEXT_TYPE } from '../../../src/http/page.ts';
import { anyRequest, bytesOf, STREAM, type AnyRequest } from '../support/any-request.ts';
import { SAMPLE_BODIES } from '../support/sample-bodies.ts';

const SEED = 20_261_121;
const SHARD_COUNT = 2;
const mainOf = (service: string) =>
  fileURLToPath(new URL(`../../../../${service}/src/main.ts`, import.meta.url));

let database: Database;
let intake: ServiceUnderTest;
let worker: ServiceUnderTest;
beforeAll(async () => {
  const made = await createTestDatabase();
  ({ database } = made);
  await seedDemoWorkspace(database);
  const settings = {
    DATABASE_URL: made.url,
    REDIS_URL: testRedisUrl(),
    QUEUE_PREFIX: uniquePrefix(),
    SHARD_COUNT: String(SHARD_COUNT),
  };
  [intake, worker] = await Promise.all([
    startServiceUnderTest(mainOf('intake'), {
      ...settings,
      INTAKE_PORT: '0',
      DEMO_HOSTS: 'intake.example',
    }),
    startServiceUnderTest(mainOf('worker'), { ...settings, WORKER_PORT: '0' }),
  ]);
}, 120_000);
afterAll(() => Promise.all([intake, worker].map((service) => service?.kill('SIGKILL'))));

interface Answer {
  /** Undefined if the connection ended without one. */
  readonly status: number | undefined;
  readonly headers: ReadonlyMap<string, string>;
  readonly body: string;
}

/** Sends the bytes, and with `isAll` the end of them, and takes the answer until the connection ends. */
function exchange(bytes: Buffer, isAll = false): Promise<Answer> {
  return new Promise((resolve, reject) => {
    const parts: Buffer[] = [];
    const socket = connect(intake.port, '127.0.0.1', () => {
      if (isAll) socket.end(bytes);
      else socket.write(bytes);
    });
    const late = setTimeout(() => {
      socket.destroy();
      reject(new Error(`no end within 60 s; so far: ${Buffer.concat(parts).toString('latin1')}`));
    }, 60_000);
    socket.on('data', (part) => void parts.push(part));
    socket.on('error', () => undefined);
    socket.on('close', () => {
      clearTimeout(late);
      resolve(readAnswer(Buffer.concat(parts).toString('latin1')));
    });
  });
}

function readAnswer(all: string): Answer {
  const text = all.replace(/^HTTP\/1\.1 100 Continue\r\n\r\n/, '');
  const end = text.indexOf('\r\n\r\n');
  const [line = '', ...fields] = text.slice(0, Math.max(end, 0)).split('\r\n');
  const status = /^HTTP\/1\.1 (\d{3}) /.exec(line)?.[1];
  const headers = new Map(
    fields.map((field): [string, string] => {
      const colon = field.indexOf(': ');
      return [field.slice(0, colon).toLowerCase(), field.slice(colon + 2)];
    }),
  );
  const body = text.slice(end + 4);
  const isChunked = headers.get('transfer-encoding') === 'chunked';
  return {
    status: status === undefined ? undefined : Number(status),
    headers,
    body: Buffer.from(isChunked ? dechunked(body) : body, 'latin1').toString('utf8'),
  };
}

function dechunked(body: string): string {
  let text = '';
  for (let at = 0; ;) {
    const line = body.indexOf('\r\n', at);
    const size = Number.parseInt(body.slice(at, line), 16);
    if (line < 0 || !(size > 0)) return text;
    text += body.slice(line + 2, line + 2 + size);
    at = line + 2 + size + 2;
  }
}

/** The statuses that the specification gives this request (`ingestion-conventions.md` §1.5, §2.3, §3.3). */
function documentedStatuses({ route, pattern, method, path, ...request }: AnyRequest): number[] {
  const isAuthorization = ([name]: readonly [string, string]) => /^authorization$/i.test(name);
  if (request.headers.filter(isAuthorization).length > 1) return [400];
  // Such a connection could not be ended after the answer.
  if (['OPTIONS', 'HEAD'].includes(method) && request.chunkSizes !== undefined) return [400];
  // With an empty part the path is another one, or unknown.
  const elsewhere = /\/\/|\/$|\/\?/.test(path) ? [404, 405] : [];
  if (method === 'OPTIONS') return [204];
  if (pattern === undefined) return [404];
  if (pattern === STREAM && method === 'POST') return request.opens ? [200, 400] : [401];
  if (route === undefined)
    return ['GET', 'HEAD'].includes(method) ? [200, 400, 401, 404, 405] : [405, ...elsewhere];
  const { call } = route;
  const success = call.success === 'no-content' ? 204 : 200;
  if (call.workspaceFrom === 'delivery') return [200, 400, ...elsewhere];
  if (call.api === 'pipelines') return request.isStrict ? [200, 400, 401] : [200];
  if (request.opens !== 'track') return [401, ...(isDecodable(path) ? [] : [400]), ...elsewhere];
  return [success, 400, ...(call.hasItems ? [207] : []), ...elsewhere];
}

/** Any other path is refused before credentials are asked for. */
function isDecodable(path: string): boolean {
  try {
    decodeURIComponent(path.replace(/\?.*$/s, ''));
    return true;
  } catch {
    return false;
  }
}

const REASONS = new Set([
  ...Object.keys(ISSUE_CODES), 'unauthorized', 'not_found', 'method_not_allowed', 'partly_accepted',
  'invalid_framing',
]); // prettier-ignore

/** The one error body (`ingestion-conventions.md` §3.3), without a trace of our insides. */
function expectProblem({ status, headers, body }: Answer): void {
  expect(headers.get('content-type')).toBe('application/json; charset=utf-8');
  const problem = JSON.parse(body) as {
    status: number;
    code: string;
    message: string;
    errors: { field: unknown; reason: string; message: string; batch_index?: number }[];
    meta: { error: string; errors: string[] };
  };
  expect(problem.status).toBe(status);
  expect(REASONS).toContain(problem.code);
  expect(problem.message).not.toBe('');
  expect(problem.meta.error).toBe(problem.message);
  expect(problem.meta.errors).toEqual(problem.errors.map(({ message }) => message));
  expect(problem.errors.length).toBeGreaterThan(0);
  for (const { field, reason, message, batch_index: index } of problem.errors) {
    expect(field === null || typeof field === 'string').toBe(true);
    expect(REASONS).toContain(reason);
    expect(message).not.toBe('');
    if (status === 207) expect(Number.isInteger(index)).toBe(true);
  }
  if (status === 401) expect(headers.get('www-authenticate')).toMatch(/^Basic /);
  if (status === 405) expect(headers.get('allow')).toMatch(/^[A-Z, ]+$/);
  expect(body).not.toMatch(/\\n\s*at |node_modules|file:\/\//);
}

/** More chunks below 160 bytes than one connection may send at once (`docs/operations/proxy.md`). */
function isFlood({ body, chunkSizes }: AnyRequest): boolean {
  if (chunkSizes === undefined) return false;
  const tinyShare = chunkSizes.filter((size) => size < 160).length / chunkSizes.length;
  const meanSizeBytes = chunkSizes.reduce((sum, size) => sum + size, 0) / chunkSizes.length;
  return (tinyShare * body.length) / meanSizeBytes > 6_000;
}

function expectDocumented(request: AnyRequest, answer: Answer): void {
  const { status, body } = answer;
  if (status === undefined && isFlood(request)) return;
  const sent = bytesOf(request).subarray(0, 1_000).toString('latin1');
  expect(documentedStatuses(request), sent).toContain(status);
  if (request.method === 'HEAD') expect(body).toBe('');
  else if (status === 204) expect(body).toBe('');
  else if (status === 200 && request.pattern === STREAM) expectAcknowledgements(answer);
  else if (request.route?.call.success === 'results' && (status === 200 || status === 207))
    expectResults(answer);
  else if (status === 200 && request.route) expect(body).toBe('{}\n');
  else if (status !== 200 && answer.headers.get('content-type') !== TEXT_TYPE)
    expectProblem(answer);
}

/** One for each message: it was taken, or why it was not. */
function expectResults({ status, headers, body }: Answer): void {
  expect(headers.get('content-type')).toBe('application/json; charset=utf-8');
  const { results } = JSON.parse(body) as {
    results: {
      status: string;
      event_id?: string;
      errors?: { reason: string; message: string }[];
    }[];
  };
  expect(results.some((each) => each.status === 'refused')).toBe(status === 207);
  for (const { status: outcome, event_id: eventId, errors = [] } of results)
    if (outcome === 'accepted') expect(eventId).toMatch(/./);
    else for (const { reason } of errors) expect(REASONS).toContain(reason);
  expect(body).not.toMatch(/\\n\s*at |node_modules|file:\/\//);
}

function expectAcknowledgements({ headers, body }: Answer): void {
  expect(headers.get('content-type')).toBe('application/x-ndjson; charset=utf-8');
  const lines = body
    .trimEnd()
    .split('\n')
    .map((line) => JSON.parse(line) as { line: number; end?: string });
  expect(lines.map(({ line }) => line)).toEqual(
    lines.map(({ line }) => line).toSorted((a, b) => a - b),
  );
  expect(lines.at(-1)?.end).toMatch(/^(complete|rejected|invalid_encoding)$/);
}

/** Undefined: cut. uWebSockets.js answers 431 and 505 by itself. */
const GARBLED_STATUSES = [undefined, 200, 204, 207, 400, 401, 404, 405, 431, 505];

/** Alive, and without a word of a fault. */
async function expectUnharmed(service: ServiceUnderTest): Promise<void> {
  expect((await fetch(`${service.url}/livez`)).status).toBe(200);
  expect(service.logs.filter(({ level }) => Number(level) >= 50)).toEqual([]);
}

test('every call has bodies to make random ones from', () => {
  for (const { call } of routes) expect(SAMPLE_BODIES).toHaveProperty([call.name]);
});

describe('any bytes on any endpoint', () => {
  test('are answered as documented, and leave intake unharmed', { timeout: 600_000 }, async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.array(anyRequest(DEMO), { minLength: 8, maxLength: 8 }),
        async (requests) => {
          const answers = await Promise.all(requests.map((each) => exchange(bytesOf(each))));
          for (const [index, answer] of answers.entries())
            expectDocumented(requests[index]!, answer);
        },
      ),
      { seed: SEED, numRuns: 80 },
    );
    await expectUnharmed(intake);
  });

  test(
    'that are hardly a request end the connection, answered or not',
    { timeout: 600_000 },
    async () => {
      const garbled = fc
        .tuple(
          anyRequest(DEMO),
          fc.array(fc.tuple(fc.nat(), fc.nat(4), fc.uint8Array({ maxLength: 4 })), {
            minLength: 1,
          }),
        )
        .map(([request, edits]) =>
          edits.reduce((bytes, [at, dropped, put]) => {
            // Mostly in the head.
            const start = at % Math.min(bytes.length, 300);
            return Buffer.concat([bytes.subarray(0, start), put, bytes.subarray(start + dropped)]);
          }, bytesOf(request)),
        );
      const noise = fc.uint8Array({ maxLength: 100 }).map((bytes) => Buffer.from(bytes));
      await fc.assert(
        fc.asyncProperty(
          fc.array(fc.oneof({ weight: 5, arbitrary: garbled }, noise), {
            minLength: 8,
            maxLength: 8,
          }),
          async (all) => {
            const answers = await Promise.all(all.map((bytes) => exchange(bytes, true)));
            for (const { status } of answers) expect(GARBLED_STATUSES).toContain(status);
          },
        ),
        { seed: SEED, numRuns: 80 },
      );
      await expectUnharmed(intake);
    },
  );

  test('are applied without a dead letter if intake took them', { timeout: 600_000 }, async () => {
    // A shard is processed in order: these come after all that was taken before.
    const people = Array.from({ length: 20 }, (_, index) => `marker-${index}`);
    for (const person of people) {
      const answer = await fetch(`${intake.url}/v1/track`, {
        method: 'POST',
        headers: { Authorization: `Basic ${Buffer.from(`${DEMO.writeKey}:`).toString('base64')}` },
        body: JSON.stringify({ userId: person, event: 'the last' }),
      });
      expect(answer.status).toBe(200);
    }
    await vi.waitFor(
      async () => {
        const { rows } = await sql<{ count: number }>`
          select count(*)::int as count from events where name = 'the last'`.execute(database);
        expect(rows[0]?.count).toBe(people.length);
      },
      { timeout: 180_000, interval: 100 },
    );
    const deadLettered = await sql`select * from parked_operations`.execute(database);
    expect(deadLettered.rows).toEqual([]);
    await expectUnharmed(worker);
  });
});
