/**
 * Security: no answer shows whether something exists that is not the caller's.
 *
 * Neither its content nor its time shows it. The test compares the work, not the time: the same bytes go out, after the
 * same statements, whose plans are the same for a key that is there and one that is not (`account-plans.test.ts` of
 * `database`). A clock would show less, and would sometimes be wrong.
 */
import { sql } from 'kysely';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { startApi, type ApiUnderTest } from '../support/api-under-test.ts';
import { insertToken } from '../support/inserted-rows.ts';
import {
  isNamedByCaller,
  fillPath,
  keyOf,
  listOperations,
  type Operation,
  WORDS_IN_PATHS,
} from '../support/every-operation.ts';
import { completion, otherThan, startSignups, type SignupWorld } from '../support/signup-world.ts';
import { statementsSentBy } from '@sluice/database/testing/statements-sent';
import {
  insertOwned,
  ownedBody,
  untilMisuseIsRecorded,
  untilUseIsRecorded,
} from '../support/tenant-world.ts';

let api: ApiUnderTest;
let ownedByB: Readonly<Record<string, string>>;
beforeAll(async () => {
  api = await startApi();
  ownedByB = await insertOwned(api, api.b, 'belongs-to-b');
  // Both are written beside an answer, and must not count among the statements of another.
  await api.call('GET', `/v1/accounts/${api.a.accountId}`, { key: api.a.token });
  await untilUseIsRecorded(api, api.a);
  await api.call('GET', `/v1/accounts/${api.b.accountId}`, { key: api.a.token });
  await untilMisuseIsRecorded(api);
});
afterAll(() => api.close());

type Answer = Awaited<ReturnType<ApiUnderTest['call']>>;

/** Everything of an answer but the id of its request. */
function shownBy(answer: Answer) {
  const id = String(answer.headers['x-request-id']);
  const {
    'x-request-id': _id,
    date: _date,
    'content-length': _length,
    link,
    ...headers
  } = answer.headers;
  // It repeats the path that was asked for.
  const successor =
    link === undefined ? undefined : String(link).replace(/accounts\/\d+/, 'accounts/asked');
  return {
    status: answer.statusCode,
    headers,
    successor,
    body: answer.body.replaceAll(id, 'the request'),
  };
}

async function observe(call: () => Promise<Answer>) {
  // Once unobserved: a token is looked up and remembered for a second, and tables of types are read once.
  await call();
  let answer: Answer | undefined;
  const sent = await statementsSentBy(async () => {
    answer = await call();
  });
  // The record that a token was used on another account: no answer waits for it (`record-misuse.ts`), so it is sent at
  // any time.
  const statements = sent.map(({ text }) => text).filter((text) => !text.includes('call_counts'));
  return { ...shownBy(answer!), statements };
}

test('I35: an id of another account causes the same answer and the same work as an unknown id, on every path', async () => {
  const operations = listOperations(api).filter(
    ({ method, pathParameters, opensWith, path }) =>
      pathParameters.length > 0 &&
      opensWith !== 'nothing' &&
      !isNamedByCaller({ method, path }) &&
      !path.startsWith('/v1/account_signup/partner_application'),
  );
  expect(operations.length).toBeGreaterThan(40);
  let compared = 0;
  for (const operation of operations) {
    const call = (valueOf: (name: string) => string) => () =>
      api.call(operation.method, fillPath(operation, valueOf), {
        key: keyOf(operation, api.a),
        ...(operation.takesBody && { body: ownedBody(operation, 'belongs-to-b') }),
      });
    const isId = (name: string) => WORDS_IN_PATHS[name] === undefined;
    const ids = operation.pathParameters.filter(isId);
    const places = [
      (own: (name: string) => string) => own,
      // In the caller's own account, an object of another.
      ...(ids.includes('account_id') && ids.length > 1
        ? [
            (own: (name: string) => string) => (name: string) =>
              name === 'account_id' ? String(api.a.accountId) : own(name),
          ]
        : []),
    ];
    for (const place of places) {
      const ofB = await observe(call(place((name) => ownedByB[name]!)));
      const ofNobody = await observe(call(place((name) => likeButNobodys(name, operation))));
      const shown = `${operation.method} ${operation.path}`;
      expect(ofB.status, shown).toBe(404);
      expect(ofB, shown).toEqual(ofNobody);
      compared += 1;
    }
  }
  expect(compared).toBeGreaterThan(45);
});

/** A value in the right form that belongs to no tenant. */
function likeButNobodys(name: string, operation: Operation): string {
  const words = WORDS_IN_PATHS[name];
  if (words !== undefined) return words;
  const ofB = ownedByB[name]!;
  if (/^\d+$/.test(ofB)) return '2000000000';
  if (name === 'link') throw new Error(`${operation.path} opens with its link, not with a key`);
  // As long, so that the answers are.
  return `${ofB.slice(0, -1)}${ofB.endsWith('9') ? '8' : '9'}`;
}

test('tokens that are wrong, revoked, expired or of a closed account are refused alike, after one statement', async () => {
  const { accountId } = api.a;
  await insertToken(api.database, accountId, 'sa_live_revoked_one');
  await insertToken(api.database, accountId, 'sa_live_expired_one', {
    expiresAt: new Date(api.clock.nowMs - 1).toISOString(),
  });
  await sql`
    update api_credentials set revoked_at = now() where secret_hint = ${'sa_live_revoked_one'.slice(-4)}
       and secret_hash = sha256('sa_live_revoked_one')`.execute(api.database);
  // Opens all connections of the pool: their own statements do not count.
  await Promise.all(
    Array.from({ length: 20 }, (_, n) =>
      api.call('GET', `/v1/accounts/${accountId}/all_users`, { key: `sa_live_unknown_${n}` }),
    ),
  );
  const seen = [];
  for (const token of ['sa_live_unknown_one', 'sa_live_revoked_one', 'sa_live_expired_one']) {
    const call = () => api.call('GET', `/v1/accounts/${accountId}/all_users`, { key: token });
    // Not an answer that a second of remembering hides.
    api.clock.nowMs += 2_000;
    let answer: Answer | undefined;
    const sent = await statementsSentBy(async () => {
      answer = await call();
    });
    seen.push({ ...shownBy(answer!), statements: sent.map(({ text }) => text) });
  }
  expect(seen[0]!.status).toBe(401);
  expect(seen[0]!.statements).toHaveLength(1);
  for (const each of seen) expect(each).toEqual(seen[0]);
});

describe('signup', () => {
  let world: SignupWorld;
  beforeAll(async () => {
    world = await startSignups();
  });
  afterAll(() => world.close());

  test('starts with the same answer and statements for an unknown address, a known one and one without codes left', async () => {
    const known = world.newAddress();
    await world.complete(known, await world.startedCode(known));
    const spent = world.newAddress();
    for (let starts = 0; starts < 3; starts += 1) await world.start(spent);
    await world.relay();
    const seen = [];
    for (const address of [world.newAddress(), known, spent]) {
      let answer: Answer | undefined;
      const sent = await statementsSentBy(async () => {
        answer = await world.start(address);
      });
      seen.push({ ...shownBy(answer!), statements: sent.map(({ text }) => text) });
    }
    expect(seen[0]!.status).toBe(200);
    expect(seen[0]!.statements.length).toBeGreaterThan(3);
    for (const each of seen) expect(each).toEqual(seen[0]);
    const before = world.mails.length;
    await world.relay();
    const to = world.mails.slice(before).map((mail) => mail.to);
    // The fourth of the hour gets no mail.
    expect(to).not.toContain(spent);
  });

  test('I36: wrong, used and unknown codes are refused alike, after the same work', async () => {
    const used = world.newAddress();
    const usedCode = await world.startedCode(used);
    await world.complete(used, usedCode);
    const started = world.newAddress();
    const wrong = otherThan(await world.startedCode(started));
    const seen = [];
    for (const [address, code] of [
      [started, wrong],
      [used, usedCode],
      [world.newAddress(), '123456'],
    ] as const) {
      let answer: Answer | undefined;
      const sent = await statementsSentBy(async () => {
        answer = await world.post('/v1/account_signup/code', completion(address, code));
      });
      seen.push({ ...shownBy(answer!), statements: sent.map(({ text }) => text) });
    }
    expect(seen[0]!.status).toBe(422);
    for (const each of seen) expect(each).toEqual(seen[0]);
  });
});
