/** Hostile paths and queries on every operation. They get a documented answer that names the field, never a 500. */
import { afterAll, beforeAll, expect, test } from 'vitest';
import type { ApiUnderTest } from '../support/api-under-test.ts';
import { fillPath, isNamedByCaller, type Operation, QUERIES } from '../support/every-operation.ts';
import {
  expectDocumented,
  goodBody,
  type HostileWorld,
  RAW_TEXTS,
  startHostileWorld,
  SWEEP_TIMEOUT_MS,
  TEXTS,
} from '../support/hostile-world.ts';

let api: ApiUnderTest;
let operations: readonly Operation[];
let existing: Readonly<Record<string, string>>;
let call: HostileWorld['call'];
beforeAll(async () => {
  ({ api, operations, existing, call } = await startHostileWorld());
});
afterAll(() => api.close());

const bodyOf = (operation: Operation) => (operation.takesBody ? { body: goodBody(operation) } : {});

let turn = 0;
/** Of each parameter a third, in turn: every text meets every kind of parameter, in a third of the time. */
function aThirdOf(texts: readonly string[]): string[] {
  turn += 1;
  return texts.filter((_, place) => (place + turn) % 3 === 0);
}

test('the operations tried are all that the document has', () => {
  expect(operations.length).toBeGreaterThanOrEqual(13);
});

test('in every path parameter', { timeout: SWEEP_TIMEOUT_MS }, async () => {
  for (const operation of operations.filter((each) => each.pathParameters.length > 0)) {
    // Each by itself, so that it is not a refusal of another that is seen; and all of them.
    for (const spoiled of [...operation.pathParameters.map((name) => [name]), undefined]) {
      for (const text of aThirdOf([...TEXTS, ...RAW_TEXTS])) {
        const url = operation.path.replaceAll(/\{(\w+)\}/g, (_all, name: string) => {
          if (spoiled && !spoiled.includes(name)) return encodeURIComponent(existing[name]!);
          return RAW_TEXTS.includes(text) ? text : encodeURIComponent(text);
        });
        const answer = await call(operation, url, bodyOf(operation));
        // An empty segment or "..": another path, or an invalid one. Half a percent sign: no path at all.
        if (answer.statusCode === 405 || answer.json().code === 'invalid_request') continue;
        // ".." in place of a webhook is the path of all deliveries.
        if (text === '%2e%2e' && operation.path.endsWith('/{webhook_id}/deliveries')) continue;
        // 403 for calls of the staff, with every path; 422 if the body, which is refused for fields of other
        // operations, is read before a plan is looked up in the catalogue.
        const statuses = operation.path.endsWith('/plans/{plan_id}') ? [403, 404, 422] : [403, 404];
        // An attribute of any name has a history, if only an empty one.
        if (operation.path.endsWith('/history') && spoiled?.[0] === 'name') statuses.push(200);
        // Some texts are good names, so the operation makes an object.
        if (isNamedByCaller(operation) && answer.statusCode === 200) {
          const gone = await api.call('DELETE', `${url}?forget=true`);
          expect(gone.statusCode).toBe(200);
          continue;
        }
        expectDocumented({ ...operation, statuses }, answer, { spoiled, text });
      }
    }
  }
});

test('in every query parameter', { timeout: SWEEP_TIMEOUT_MS }, async () => {
  for (const operation of operations.filter((each) => each.method === 'GET')) {
    const url = fillPath(operation, (name) => existing[name]!);
    const required = QUERIES[operation.path];
    for (const name of operation.queryParameters) {
      for (const value of aThirdOf([...TEXTS.map(encodeURIComponent), ...RAW_TEXTS])) {
        const own = required === undefined || required.startsWith(`${name}=`) ? '' : `&${required}`;
        expectDocumented(operation, await call(operation, `${url}?${name}=${value}${own}`), {
          name,
          value,
        });
        expectDocumented(
          operation,
          await call(operation, `${url}?${name}=${value}&${name}=1${own}`),
          { name, value, times: 2 },
        );
        expectDocumented(operation, await call(operation, `${url}?${name}[a]=${value}${own}`), {
          name,
          value,
          nested: true,
        });
      }
    }
  }
});

/** A position in each list, as its tokens have it. */
const POSITIONS: Readonly<Record<string, readonly (string | number)[]>> = {
  'GET /v1/customers': ['id', 'ada'],
  'GET /v1/customers/{identifier}/activities': ['1', 'event-1'],
  'GET /v1/customers/{identifier}/attributes/{name}/history': ['1', 'event-1'],
  'GET /v1/customers/{identifier}/relationships': ['1'],
  'GET /v1/object_types': [1],
  'POST /v1/objects': ['acme'],
  'GET /v1/objects/{object_type_id}/{object_id}/relationships': ['1'],
  'GET /v1/events': ['1', 'event-1'],
  'GET /v1/ingestion_issues': ['2026-03-01', 'a', 'b', 'c'],
  'GET /v1/imports': [1],
  'GET /v1/portal_links': ['id-1'],
  'GET /v1/event_types': ['acme'],
  'GET /v1/applications': ['acme'],
  'GET /v1/applications/{application_id}/endpoints': [1],
  'GET /v1/deliveries': [1, 1],
  'GET /v1/reporting_webhooks/{webhook_id}/deliveries': [1],
  'GET /v1/reporting_webhooks/{webhook_id}/replays/{replay_id}/attempts': [1, 1],
  'GET /v1/accounts/{account_id}/billing/runs': [0, 'run_of_a'],
  'GET /v1/accounts/{account_id}/billing/credits/ledger': ['llm', 1],
};
const BEYOND: readonly unknown[] = [
  ...[-1, 0, 0.5, 2 ** 31, 2 ** 53 - 1, 2 ** 53, 8.64e15 + 1, 1e300, null, [], {}],
  ...['0000-01-01', '9999-12-31', '10000-01-01', '2026-02-30', '9'.repeat(18), '9'.repeat(40)],
];

test('in every part of every page token', { timeout: SWEEP_TIMEOUT_MS }, async () => {
  // Elsewhere `start` and `end` are days.
  const paged = operations.filter(
    ({ queryParameters: names }) => names.includes('start') && !names.includes('end'),
  );
  expect(paged.map(({ method, path }) => `${method} ${path}`).toSorted()).toEqual(
    Object.keys(POSITIONS).toSorted(),
  );
  for (const operation of paged) {
    const url = fillPath(operation, (name) => existing[name]!);
    const position = POSITIONS[`${operation.method} ${operation.path}`]!;
    const send = async (given: unknown) => {
      const start = Buffer.from(JSON.stringify(given)).toString('base64url');
      const required = operation.path === '/v1/customers' ? '&query=a' : '';
      const answer = await call(operation, `${url}?start=${start}${required}`, bodyOf(operation));
      expectDocumented(operation, answer, given);
      return answer;
    };
    // Otherwise the values below would not come as far as the database.
    expect((await send(position)).statusCode).toBe(200);
    for (const place of position.keys())
      for (const value of [...TEXTS.filter((text) => text.length < 300), ...BEYOND])
        await send(position.with(place, value as string));
  }
});

test('a GET ignores unknown query keys or answers as documented', async () => {
  for (const operation of operations.filter((each) => each.method === 'GET')) {
    const url = fillPath(operation, (name) => existing[name]!);
    for (const query of [
      '__proto__=1',
      '__proto__[limit]=9',
      'constructor=1',
      'a=1',
      '&&==&',
      '%00=1',
      `x${'='.repeat(5000)}`,
      '%ff=%ff',
    ]) {
      const required = QUERIES[operation.path] ?? '';
      const answer = await call(operation, `${url}?${query}&${required}`);
      // These ask for the name of a purchase, which unknown keys do not give, for a delivery that is not there, for payment by invoice, or for a scope; the audit log,
      // the events, their counts, and the deliveries of a workspace refuse filters that they do not know, since the answer would be of all entries.
      if (
        /(purchase_status|checkout_status|overage_estimate|billing\/payment|billing\/profile|audit_logs|fleet|statistics|v1\/events|v1\/deliveries|deliveries\/\{sequence\}|\{attempt\}\/request)$/.test(
          operation.path,
        )
      ) {
        expectDocumented(operation, answer, query);
        continue;
      }
      expect({ path: operation.path, query, status: answer.statusCode }).toMatchObject({
        status: 200,
      });
    }
  }
});

test('the hostile input leaves the prototype of all objects unchanged', () => {
  expect(({} as Record<string, unknown>)['disabled']).toBeUndefined();
  expect(({} as Record<string, unknown>)['limit']).toBeUndefined();
});
