/** Calls of the API, and their refusals. */
import { afterAll, beforeEach, expect, test, vi } from 'vitest';
import { RequestFailed } from '../../src/client/request.ts';

let sent: Request[] = [];
let answer: () => Response = () => Response.json({});
beforeEach(() => {
  sent = [];
  answer = () => Response.json({});
});
// In a page, a path without a host is of the page's own.
vi.stubGlobal(
  'Request',
  class extends Request {
    constructor(path: string, init?: RequestInit) {
      super(new URL(path, 'http://console.test'), init);
    }
  },
);
vi.stubGlobal('fetch', (asked: Request) => {
  sent.push(asked);
  return Promise.resolve(answer());
});
afterAll(() => void vi.unstubAllGlobals());
const { get, getFile, post, put, remove } = await import('../../src/client/calls.ts');

test('a read has its parameters in the address, and the workspace in a header', async () => {
  answer = () => Response.json({ deliveries: [], next: '' });
  const call = get('/v1/reporting_webhooks/{webhook_id}/deliveries', {
    path: { webhook_id: '7/../8' },
    query: { state: 'pending', since: '12', person: 'a&b', start: undefined },
  });
  expect(await call.send({ workspaceId: 3 })).toEqual({ deliveries: [], next: '' });
  expect(sent[0]?.url).toBe(
    'http://console.test/v1/reporting_webhooks/7%2F..%2F8/deliveries?state=pending&since=12&person=a%26b',
  );
  expect(sent[0]?.headers.get('x-sluice-workspace')).toBe('3');
  expect(sent[0]?.redirect).toBe('error');
});

test('a write has its body and the key that it is sent with', async () => {
  const call = put('/v1/feeds/{name}', { path: { name: 'a' }, body: { events: ['event'] } });
  await call.send({ idempotencyKey: 'k' });
  expect(sent[0]?.method).toBe('PUT');
  expect(sent[0]?.headers.get('idempotency-key')).toBe('k');
  expect(sent[0]?.headers.get('content-type')).toBe('application/json');
  expect(await sent[0]?.json()).toEqual({ events: ['event'] });
});

test('an answer without a body is undefined, and one of a file is its bytes', async () => {
  answer = () => new Response(null, { status: 204 });
  expect(await remove('/v1/feeds/{name}', { path: { name: 'a' } }).send({})).toBe(undefined);
  answer = () => new Response('a,b\n');
  const file = await getFile('/v1/imports/{import_id}/errors', { path: { import_id: 1 } }).send({});
  expect(await file.text()).toBe('a,b\n');
});

test('a refusal is thrown with the text of the answer, and so is the absence of an answer', async () => {
  const text = '{"code":"not_found","detail":"no such feed","meta":{"request_id":"r1"}}';
  answer = () => new Response(text, { status: 404 });
  const failure = await get('/v1/feeds')
    .send({})
    .catch((error: unknown) => error);
  expect(failure).toBeInstanceOf(RequestFailed);
  expect(failure).toMatchObject({ status: 404, code: 'not_found', message: 'no such feed' });
  expect(failure).toMatchObject({ requestId: 'r1', answer: { text } });
  answer = () => {
    throw new TypeError('the connection is lost');
  };
  await expect(get('/v1/feeds').send({})).rejects.toMatchObject({ status: 0, code: 'no_answer' });
  const aborted = new DOMException('aborted', 'AbortError');
  answer = () => {
    throw aborted;
  };
  await expect(get('/v1/feeds').send({})).rejects.toBe(aborted);
});

test('equal calls have equal keys, and another parameter or body is another call', () => {
  const keyOf = (limit: number): string => get('/v1/event_types', { query: { limit } }).key;
  expect(keyOf(1)).toBe(keyOf(1));
  expect(keyOf(1)).not.toBe(keyOf(2));
  const named = (name: string): string => post('/v1/applications', { body: { name } }).key;
  expect(named('a')).not.toBe(named('b'));
});

test('the compiler refuses a path, a parameter, a body and a member that the API does not have', async () => {
  // @ts-expect-error no such path
  get('/v1/no_such_path');
  // @ts-expect-error no such method of the path
  remove('/v1/feeds');
  // @ts-expect-error no name of the feed
  get('/v1/feeds/{name}');
  // @ts-expect-error no such parameter
  get('/v1/event_types', { query: { sort: 'name' } });
  // @ts-expect-error no such value
  get('/v1/reporting_webhooks', { query: { include: 'secrets' } });
  // @ts-expect-error no such member of the body
  post('/v1/applications', { body: { name: 'a', colour: 'red' } });
  // @ts-expect-error the body has no name
  post('/v1/applications', { body: {} });
  answer = () => Response.json({ feeds: [] });
  const { feeds } = await get('/v1/feeds').send({});
  // @ts-expect-error no such member of the answer
  expect(feeds[0]?.colour).toBe(undefined);
});
