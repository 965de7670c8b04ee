/** Callers that do not read their answers. */
import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import { sql } from 'kysely';
import { afterEach, expect, test, vi } from 'vitest';
import { listen } from '../../../src/server.ts';
import type { UnreadAnswersOptions } from '../../../src/serving/unread-answers.ts';
import { startApi, type ApiUnderTest } from '../support/api-under-test.ts';
import { insertTenant, type Tenant } from '../support/inserted-rows.ts';

const TIMEOUT = { timeout: 60_000, interval: 20 };
const MEBIBYTE = 1_048_576;
const READ_COUNT = 30;
const PATH = '/v1/ingestion_issues?limit=1000';

let api: ApiUnderTest;
let port: number;

async function start(
  unreadAnswers: UnreadAnswersOptions,
  changes: Parameters<typeof startApi>[0] = {},
): Promise<void> {
  api = await startApi(changes, { unreadAnswers });
  port = await listen(api.app, '127.0.0.1', 0);
  await insertIssues([api.a, api.b]);
}
afterEach(() => api.close());

async function insertIssues(tenants: readonly Tenant[]): Promise<void> {
  for (const { environmentId } of tenants)
    await sql`
      insert into ingestion_issues
        (environment_id, day, code, source, field, count, first_at, last_at, message)
      select ${environmentId}, current_date, 'invalid', 'pipelines.track', 'traits.' || n, 1, now(), now(), repeat('x', 1000)
        from generate_series(1, 1000) n`.execute(api.database);
}

/** Sends `count` reads of 1.2 MB each, and takes no byte. */
async function readNothing(count: number, key = api.a.key): Promise<Socket> {
  const socket = connect(port, '127.0.0.1');
  socket.on('error', () => undefined);
  await once(socket, 'connect');
  socket.pause();
  socket.write(
    `GET ${PATH} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${key}\r\n\r\n`.repeat(count),
  );
  return socket;
}

/**
 * Opens connections that take no byte, until a read is refused. The kernel takes some megabytes of each, which are not held
 * any more.
 */
async function fillUnread(key = api.a.key, read = () => statusOf(key)): Promise<Socket[]> {
  const sockets: Socket[] = [];
  await vi.waitFor(async () => {
    sockets.push(await readNothing(READ_COUNT, key));
    expect(await read()).toBe(429);
  }, TIMEOUT);
  return sockets;
}

const statusOf = async (key: string): Promise<number> => {
  const headers = { authorization: `Bearer ${key}`, connection: 'close' };
  const answer = await fetch(`http://127.0.0.1:${port}${PATH}`, { headers });
  await answer.arrayBuffer();
  return answer.status;
};

// One key held 1.2 GB within two minutes.
test('a workspace whose callers do not read gets 429 beyond a bound, and other workspaces get their answers', async () => {
  let answeredCount = 0;
  await start({ sizeBytesMax: 16 * MEBIBYTE, readMsMin: 600_000, sizeBytesASecondMin: 10 });
  const sockets = await fillUnread();
  expect(await statusOf(api.b.key)).toBe(200);
  for (const socket of sockets) {
    let tail = '';
    socket.setEncoding('latin1').on('data', (part: string) => {
      const text = tail + part;
      answeredCount += text.match(/HTTP\/1\.1 /g)?.length ?? 0;
      tail = text.slice(-8);
    });
    socket.resume();
  }
  const count = READ_COUNT * sockets.length;
  await vi.waitFor(() => expect(answeredCount).toBe(count), TIMEOUT);
  await vi.waitFor(async () => expect(await statusOf(api.a.key)).toBe(200), TIMEOUT);
  for (const socket of sockets) socket.destroy();
});

// The four filled the bound with their shares, and every other workspace was refused.
test('four workspaces whose callers do not read leave a part to the others', async () => {
  await start({ sizeBytesMax: 32 * MEBIBYTE, readMsMin: 600_000, sizeBytesASecondMin: 10 });
  const c = await insertTenant(api.database, 'key_of_c');
  const d = await insertTenant(api.database, 'key_of_d');
  await insertIssues([c, d]);
  const hostile = [api.a, c, d, await insertTenant(api.database, 'key_of_e')];
  await insertIssues(hostile.slice(3));
  const sockets: Socket[] = [];
  for (const { key } of hostile) sockets.push(...(await fillUnread(key)));
  expect(await statusOf(api.b.key)).toBe(200);
  for (const socket of sockets) socket.destroy();
});

// Its filter is a body, so it was taken for a change, whose answer is never refused.
test('a search by a body is refused like any read', async () => {
  await start({ sizeBytesMax: 16 * MEBIBYTE, readMsMin: 600_000, sizeBytesASecondMin: 10 });
  // Its answer is larger than a list's, so no search passes if a list is refused.
  for (const { environmentId } of [api.a, api.b])
    await sql`
      insert into objects (environment_id, object_number, object_type_id, object_id, attributes, created_at, updated_at)
      select ${environmentId}, n, 1, rpad(n::text, 1400, 'x'), '{"plan": "pro"}', now(), now()
        from generate_series(1, 1000) n`.execute(api.database);
  const search = async (key: string): Promise<number> => {
    const answer = await fetch(`http://127.0.0.1:${port}/v1/objects?limit=1000`, {
      method: 'POST',
      headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json' },
      body: JSON.stringify({
        object_type_id: 1,
        filter: { object_attribute: { field: 'plan', operator: 'eq', value: 'pro' } },
      }),
    });
    await answer.arrayBuffer();
    return answer.status;
  };
  expect(await search(api.a.key)).toBe(200);
  const sockets = await fillUnread(api.a.key, () => search(api.a.key));
  expect(await search(api.b.key)).toBe(200);
  for (const socket of sockets) socket.destroy();
});

// The connection was cut in the middle of the tail.
test('a list that waits behind a live tail of its connection is overdue only after the tail', async () => {
  const tailMs = 4_000;
  await start(
    { sizeBytesMax: 64 * MEBIBYTE, readMsMin: tailMs / 2, sizeBytesASecondMin: 1e9 },
    { tailDurationMsMax: tailMs },
  );
  const socket = connect(port, '127.0.0.1');
  let text = '';
  socket.setEncoding('latin1').on('data', (part: string) => void (text += part));
  const get = (path: string, more = '') =>
    `GET ${path} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${api.a.key}\r\n${more}\r\n`;
  socket.write(get('/v1/stream') + get(PATH, 'Connection: close\r\n'));
  await once(socket, 'end');
  expect(text.match(/HTTP\/1\.1 200 /g)).toHaveLength(2);
  expect(text).toMatch(/"next":[^}]*\}\s*(?:\r\n0\r\n\r\n)?$/);
  socket.destroy();
});

test('a caller whose answer is overdue is cut', async () => {
  await start({ sizeBytesMax: 64 * MEBIBYTE, readMsMin: 500, sizeBytesASecondMin: 1e9 });
  const accepted = once(api.app.server, 'connection') as Promise<[Socket]>;
  const socket = await readNothing(30);
  const [ours] = await accepted;
  // Much sooner than a silent connection.
  await vi.waitFor(() => expect(ours.destroyed).toBe(true), TIMEOUT);
  socket.destroy();
});
