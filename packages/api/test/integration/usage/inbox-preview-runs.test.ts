/** Recording runs of inbox previews: a job is charged once and refunded once, and no pool falls below 0. */
import { listCreditDifferences } from '@sluice/database/verify/verify-credits';
import { verifyAuditChain } from '@sluice/database/verify/verify-audit-chains';
import { sql } from 'kysely';
import { describe, expect, test } from 'vitest';
import { expectProblem } from '../../support/error-shapes.ts';
import { insertToken } from '../support/inserted-rows.ts';
import { startPreviewRuns } from '../support/preview-run-world.ts';
import { insertUser } from '../support/usage-world.ts';

const world = startPreviewRuns();
const { body, record, refund, grant, grants, count } = world;

describe('a run', () => {
  test('is answered with its day, its time and its quantity', async () => {
    await grant({ amount: 10, key: 'a' });
    const answer = await record();
    expect(answer.statusCode).toBe(200);
    expect(answer.json()).toEqual({
      recorded: true,
      run: {
        preview_job_id: 'job-1',
        date: '2026-03-01',
        occurred_at: '2026-03-01T12:00:00.000Z',
        environment_id: world.account.environmentId,
        user_id: world.userId,
        quantity: 3,
        refunded: 0,
        net: 3,
      },
    });
    expect(await grants()).toEqual(['purchased: 7/3']);
  });

  test('without a user has the user id null', async () => {
    await grant({ amount: 10, key: 'a' });
    expect((await record({ user_id: null })).json().run.user_id).toBeNull();
    const { user_id: _left, ...without } = body({ preview_job_id: 'job-2' });
    const { api, account, path } = world;
    const answer = await api.call('POST', path, { key: account.token, body: without });
    expect(answer.json().run.user_id).toBeNull();
  });

  test('uses the allowance, then goodwill, then purchased credits, and without a paid plan skips the allowance', async () => {
    await grant({ amount: 2, key: 'a' });
    await grant({ amount: 2, key: 'b', pool: 'goodwill' });
    await grant({ amount: 2, key: 'c', pool: 'monthly_allowance' });
    await record();
    expect(await grants()).toEqual(['purchased: 2/0', 'goodwill: 1/1', 'monthly_allowance: 0/2']);
    await refund('job-1');
    await sql`update accounts set plan_status = 'paused' where account_id = ${world.account.accountId}`.execute(
      world.api.database,
    );
    await record({ preview_job_id: 'job-2' });
    expect(await grants()).toEqual(['purchased: 1/1', 'goodwill: 0/2', 'monthly_allowance: 2/0']);
    const refused = await record({ preview_job_id: 'job-3', quantity: 2 });
    expectProblem(refused, 409, 'insufficient_credits');
  });

  test('that is sent again, even at the same time, is charged once, and a different body is a conflict', async () => {
    await grant({ amount: 100, key: 'a' });
    const answers = await Promise.all(Array.from({ length: 30 }, () => record()));
    expect(answers.filter((answer) => answer.json().recorded)).toHaveLength(1);
    expect(new Set(answers.map((answer) => JSON.stringify(answer.json().run))).size).toBe(1);
    expect(await grants()).toEqual(['purchased: 97/3']);
    for (const change of [{ quantity: 4 }, { user_id: null }])
      expectProblem(await record(change), 409, 'conflict');
    expect(await grants()).toEqual(['purchased: 97/3']);
    expect(await count('inbox_preview_runs')).toBe(1);
  });

  test('over the available credits is refused with the available amount, and can be sent again later', async () => {
    await grant({ amount: 2, key: 'a' });
    const headers = { 'idempotency-key': 'the-same' };
    const { api, account, path } = world;
    const send = () => api.call('POST', path, { key: account.token, body: body(), headers });
    const refused = await send();
    expectProblem(refused, 409, 'insufficient_credits');
    expect(refused.json().meta.available).toBe(2);
    expect([await grants(), await count('inbox_preview_runs')]).toEqual([['purchased: 2/0'], 0]);
    expect(await count('audit_logs')).toBe(0);
    await grant({ amount: 1, key: 'b' });
    expect((await send()).json().recorded).toBe(true);
    expect(await grants()).toEqual(['purchased: 0/2', 'purchased: 0/1']);
  });

  test('200 runs at once with credits for 66 make 66 runs and overdraw no pool', async () => {
    await grant({ amount: 100, key: 'a' });
    await grant({ amount: 100, key: 'b', pool: 'goodwill' });
    const answers = await Promise.all(
      Array.from({ length: 200 }, (_, index) => record({ preview_job_id: `job-${index}` })),
    );
    expect(answers.filter((answer) => answer.statusCode === 200)).toHaveLength(66);
    for (const answer of answers.filter((each) => each.statusCode !== 200))
      expectProblem(answer, 409, 'insufficient_credits');
    expect(await grants()).toEqual(['purchased: 2/98', 'goodwill: 0/100']);
    expect(await count('inbox_preview_runs')).toBe(66);
    expect(await listCreditDifferences(world.api.database)).toEqual([]);
    const { entryCount, findings } = await verifyAuditChain(
      world.api.database,
      world.account.accountId,
      () => {},
    );
    expect([entryCount, findings]).toEqual([66, []]);
  });
});

describe('a refund', () => {
  test('gives all of it back to the grants it came from, once, also at the same time', async () => {
    await grant({ amount: 2, key: 'a', pool: 'goodwill' });
    await grant({ amount: 5, key: 'b' });
    await record();
    expect(await grants()).toEqual(['goodwill: 0/2', 'purchased: 4/1']);
    const answers = await Promise.all(Array.from({ length: 20 }, () => refund('job-1')));
    expect(answers.filter((answer) => answer.json().refunded)).toHaveLength(1);
    for (const answer of answers)
      expect(answer.json().run).toMatchObject({ quantity: 3, refunded: 3, net: 0 });
    expect(await grants()).toEqual(['goodwill: 2/0', 'purchased: 5/0']);
    expect(await count('audit_logs')).toBe(2);
    // A refunded job is not charged again.
    expect((await record()).json()).toMatchObject({ recorded: false, run: { refunded: 3 } });
  });

  test('of a part leaves the rest, and another part is a conflict', async () => {
    await grant({ amount: 5, key: 'a' });
    await record();
    expect((await refund('job-1', { quantity: 2 })).json().run).toMatchObject({ net: 1 });
    expect((await refund('job-1', { quantity: 2 })).json().refunded).toBe(false);
    expectProblem(await refund('job-1', { quantity: 1 }), 409, 'conflict');
    expectProblem(await refund('job-1'), 409, 'conflict');
    expect(await grants()).toEqual(['purchased: 4/1']);
  });

  test('of more than the run took is refused, and a refund of an unknown job is 404', async () => {
    await grant({ amount: 5, key: 'a' });
    await record();
    const refused = await refund('job-1', { quantity: 4 });
    expectProblem(refused, 422, 'validation_failed');
    expect(refused.json().errors[0].field).toBe('quantity');
    expectProblem(await refund('job-2'), 404, 'not_found');
    expect(await grants()).toEqual(['purchased: 2/3']);
  });

  test('I10: does not restore credits that have expired meanwhile', async () => {
    const expiresAtMs = world.api.clock.nowMs + 1_000;
    await grant({ amount: 3, key: 'a', expiresAtMs });
    await record();
    world.api.clock.nowMs += 2_000;
    await refund('job-1');
    expect(await grants()).toEqual(['purchased: 0/0']);
    expectProblem(await record({ preview_job_id: 'job-2' }), 409, 'insufficient_credits');
  });

  test('of a job whose name reads like the refund of another is its own', async () => {
    await grant({ amount: 9, key: 'a' });
    await record({ preview_job_id: 'job' });
    await record({ preview_job_id: 'job:refund:1' });
    expect((await refund('job')).json().refunded).toBe(true);
    expect(await grants()).toEqual(['purchased: 6/3']);
    expect((await refund('job:refund:1')).json().refunded).toBe(true);
    expect(await grants()).toEqual(['purchased: 9/0']);
  });
});

test.each([
  ['preview_job_id', { preview_job_id: '' }, 422],
  ['preview_job_id', { preview_job_id: 'a b' }, 422],
  ['preview_job_id', { preview_job_id: 'x'.repeat(201) }, 422],
  ['quantity', { quantity: 0 }, 422],
  ['quantity', { quantity: 1.5 }, 422],
  ['quantity', { quantity: '1' }, 422],
  ['amount', { amount: 5 }, 422],
  ['user_id', { user_id: 99 }, 422],
  ['environment_id', { environment_id: 2_000_000_000 }, 403],
])('a wrong %s is refused by name without a charge', async (field, change, status) => {
  await grant({ amount: 9, key: 'a' });
  const refused = await record(change);
  expect(refused.statusCode).toBe(status);
  expect(refused.json().errors[0].field).toBe(field);
  expect(await grants()).toEqual(['purchased: 9/0']);
});

test('a foreign workspace is refused like an unknown one, and a deleted workspace of the account is accepted', async () => {
  await grant({ amount: 9, key: 'a' });
  const foreign = (await record({ environment_id: world.api.b.environmentId })).json();
  const unknown = (await record({ environment_id: 2_000_000_000 })).json();
  for (const answer of [foreign, unknown]) {
    delete answer.meta.request_id;
    delete answer.instance;
  }
  expect(foreign).toEqual(unknown);
  expect(foreign.code).toBe('environment_not_owned');
  await sql`update environments set deleted_at = now() where account_id = ${world.account.accountId}`.execute(
    world.api.database,
  );
  expect((await record()).statusCode).toBe(200);
});

test('a user of another account is no user of this one', async () => {
  await grant({ amount: 9, key: 'a' });
  await insertUser(world.api, world.api.b.accountId, 8);
  expectProblem(await record({ user_id: 8 }), 422, 'validation_failed');
});

test('a token without the scope, or one that may only read, neither records nor refunds', async () => {
  await grant({ amount: 9, key: 'a' });
  await record();
  const { accountId, token } = world.account;
  const insert = (name: string, rights: Parameters<typeof insertToken>[3]) =>
    insertToken(world.api.database, accountId, `${token}_${name}`, rights);
  await insert('admin', { scopes: [] });
  await insert('reader', { isReadOnly: true });
  await insert('meter', { role: 'member' });
  for (const [key, code] of [
    [`${token}_admin`, 'forbidden'],
    [`${token}_reader`, 'read_only'],
  ] as const) {
    expectProblem(await record({ preview_job_id: 'job-2' }, key), 403, code);
    expectProblem(await refund('job-1', undefined, key), 403, code);
  }
  expect((await record({ preview_job_id: 'job-2' }, `${token}_meter`)).statusCode).toBe(200);
  expect(await grants()).toEqual(['purchased: 3/6']);
});

test('each run and each refund leaves one entry in the audit log with the actor and the changes', async () => {
  await grant({ amount: 9, key: 'a' });
  await record();
  await record();
  await refund('job-1', { quantity: 1 });
  await refund('job-1', { quantity: 1 });
  const listed = await world.api.call(
    'GET',
    `/v1/accounts/${world.account.accountId}/audit_logs?object_type=inbox_preview_run&sort_order=asc`,
    { key: world.account.token },
  );
  expect(listed.json().audit_logs).toMatchObject([
    {
      action: 'created',
      object_id: 'job-1',
      environment_id: world.account.environmentId,
      actor: { type: 'service_account' },
      changed_attributes: ['user_id', 'quantity', 'refunded'],
    },
    { action: 'updated', object_id: 'job-1', changed_attributes: ['refunded'] },
  ]);
});
