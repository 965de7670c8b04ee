/**
 * Security: every route that the API declares, tried with every kind of credential, answers exactly as in
 * `access-table.ts`. Calls that are let in go no further: `tenant-isolation.test.ts` and `existence.test.ts` test the
 * objects that a tenant may then see.
 */
import { includesRole } from '@sluice/domain/accounts/account';
import { afterAll, beforeAll, expect, test } from 'vitest';
import type { RequestTracer } from '../../../src/serving/trace-requests.ts';
import {
  insertCredentials,
  listCredentials,
  type AccountInPath,
  type Credential,
} from '../support/access-credentials.ts';
import { OPENERS, READS, ROUTES_BY_OPENER, type Opener } from '../support/access-table.ts';
import { startApi, type ApiUnderTest } from '../support/api-under-test.ts';

/** As Fastify was given it; `url` is `/v1/customers/:identifier/attributes`. */
interface Route {
  readonly method: string;
  readonly url: string;
}

/** Methods that a path refuses are declared at once, OPTIONS among them. */
const refusals: Route[] = [];
const routes: Route[] = [];
let api: ApiUnderTest;
let accounts: Readonly<Record<AccountInPath, number>>;
let credentials: readonly Credential[];

const LET_IN = 'let in';
/** A status that no route answers. */
const LET_IN_STATUS = 418;

/** The one effect that is given the app before its first route. */
const watcher: Pick<RequestTracer, 'watch'> = {
  watch(app) {
    app.addHook('onRoute', ({ method, url }) => {
      const methods = [method].flat();
      const declared = methods.includes('OPTIONS') ? refusals : routes;
      for (const each of methods) declared.push({ method: each, url });
    });
    // After all that asks who calls, and before the body is read.
    app.addHook('preParsing', (_request, reply) => {
      void reply.code(LET_IN_STATUS).send(LET_IN);
    });
  },
};

beforeAll(async () => {
  api = await startApi({ requestTracer: watcher as RequestTracer });
  accounts = await insertCredentials(api);
  credentials = await listCredentials(api);
});
afterAll(() => api.close());

const nameOf = ({ method, url }: Route): string => `${method === 'HEAD' ? 'GET' : method} ${url}`;

test('every route has one opener in the table, and the table has only existing routes', () => {
  expect([...new Set(routes.map(nameOf))].toSorted()).toEqual(
    Object.values(ROUTES_BY_OPENER).flat().toSorted(),
  );
});

/** The order of the checks is as in `account-guard.ts`. */
function expectedOf(opener: Opener, { method, url }: Route, credential: Credential): string {
  const { opens, in: account = 'a' } = credential;
  if (opener === 'anybody') return LET_IN;
  // A test calls as no page does: a read is answered to all, and a write is refused.
  if (opener === 'page') return method === 'GET' || method === 'HEAD' ? LET_IN : 'forbidden';
  const isRead = method === 'GET' || method === 'HEAD' || READS.has(`${method} ${url}`);
  if (opener === 'app_key') {
    if (opens?.of !== 'workspace') return 'unauthorized';
    if (opens.isElsewhere) return 'ip_not_allowed';
    return opens.isReadOnly && !isRead ? 'read_only' : LET_IN;
  }
  if (opens === undefined || opens.of === 'workspace') return 'unauthorized';
  if (url.includes(':account_id') && account !== opens.of) return 'not_found';
  // A caller with a token is a program; the refusal of calls for users follows once the body is read.
  const least = opener === 'session' ? 'member' : opener;
  if (opens.isElsewhere) return 'ip_not_allowed';
  if (opens.isReadOnly && !isRead) return 'read_only';
  if (least === 'usage:write' || least === 'partners:write' || least === 'fleet:read')
    return opens.scopes.includes(least) ? LET_IN : 'forbidden';
  return includesRole(opens.role, least) ? LET_IN : 'forbidden';
}

const STATUSES: Readonly<Record<string, number>> = {
  [LET_IN]: LET_IN_STATUS,
  unauthorized: 401,
  ip_not_allowed: 403,
  read_only: 403,
  forbidden: 403,
  not_found: 404,
};

async function answerOf({ method, url }: Route, { authorization, in: account = 'a' }: Credential) {
  const path = url.replaceAll(/:(\w+)/g, (_all, name: string) =>
    name === 'account_id' ? String(accounts[account]) : '1',
  );
  const { statusCode, headers, body } = await api.app.inject({
    method: method as 'GET',
    url: path,
    ...(authorization !== undefined && { headers: { authorization } }),
  });
  return {
    status: statusCode,
    // An answer to HEAD has only the status.
    outcome: body === LET_IN || body === '' ? body : JSON.parse(body).code,
    asksForBearer: headers['www-authenticate'] === 'Bearer',
  };
}

/** Some 3,000 calls: 20 s on a machine that is idle. */
const TIMEOUT_MS = 600_000;

test(
  'every route lets in each credential that opens it, and answers every other as it should',
  async () => {
    const wrong: object[] = [];
    let letIn = 0;
    for (const route of routes) {
      for (const credential of credentials) {
        const expected = expectedOf(OPENERS.get(nameOf(route))!, route, credential);
        const answer = await answerOf(route, credential);
        if (expected === LET_IN) letIn++;
        const isRight =
          answer.status === STATUSES[expected] &&
          (route.method === 'HEAD' || answer.outcome === expected) &&
          answer.asksForBearer === (expected === 'unauthorized');
        if (!isRight) wrong.push({ ...route, credential: credential.name, expected, answer });
      }
    }
    expect(wrong).toEqual([]);
    expect(letIn).toBeGreaterThan(routes.length);
  },
  TIMEOUT_MS,
);

test('keys that may only read or are bound to a network are judged on every route of a workspace', () => {
  const limited = credentials.flatMap(({ opens }) => (opens?.of === 'workspace' ? [opens] : []));
  expect(limited).toEqual(
    expect.arrayContaining([
      { of: 'workspace', isReadOnly: true },
      { of: 'workspace', isElsewhere: true },
    ]),
  );
  const ofWorkspace = routes.filter((route) => OPENERS.get(nameOf(route)) === 'app_key');
  const outcomes = ofWorkspace.map((route) =>
    expectedOf('app_key', route, { name: '', opens: { of: 'workspace', isReadOnly: true } }),
  );
  expect(new Set(outcomes)).toEqual(new Set([LET_IN, 'read_only']));
});

test(
  'an unsupported method gets the same answer with every credential',
  { timeout: TIMEOUT_MS },
  async () => {
    const wrong: object[] = [];
    for (const route of refusals) {
      for (const credential of [credentials[0]!, ...credentials.filter(({ opens }) => opens)]) {
        const { status } = await answerOf(route, credential);
        if (status !== (route.method === 'OPTIONS' ? 204 : 405))
          wrong.push({ ...route, credential: credential.name, status });
      }
    }
    expect(wrong).toEqual([]);
  },
);
