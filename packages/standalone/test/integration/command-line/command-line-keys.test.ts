/** `sluice keys`, at a real fleet. */
import { sql } from 'kysely';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { startFleet, type Fleet } from '../fleet-under-test.ts';
import { runSluice } from '../program-under-test.ts';

let fleet: Fleet;
beforeAll(async () => void (fleet = await startFleet()));
afterAll(() => fleet.close());

const sluice = (...words: string[]) => runSluice(fleet, words);

test('keys are made, listed without their secret, and revoked', async () => {
  const made = await sluice(
    '--json',
    'keys',
    'make',
    'pipelines',
    'From a shell',
    '--workspace',
    '1',
  );
  expect(made.exitCode, made.errors).toBe(0);
  const { api_credential: credential, secret } = JSON.parse(made.output) as {
    api_credential: { id: number };
    secret: string;
  };
  const listed = await sluice('keys', 'list');
  expect(listed.output).toContain('From a shell');
  expect(listed.output).not.toContain(secret);
  expect((await sluice('keys', 'revoke', String(credential.id))).exitCode).toBe(0);
});

test('the error for a token of another account names the option for its account', async () => {
  expect(await sluice('keys', '--account', '2', 'list')).toEqual({
    exitCode: 4,
    output: '',
    errors:
      'sluice: account not found; set --account (SLUICE_ACCOUNT) to the account of the token, the account_id that its signup answered\n',
  });
});

test('a key of a workspace asks for its workspace in the words of the command', async () => {
  expect(await sluice('keys', 'make', 'app', 'Shop')).toEqual({
    exitCode: 2,
    output: '',
    errors: 'sluice: a key of type app belongs to a workspace; name it with --workspace <id>\n',
  });
});

test('a service account is made with a role', async () => {
  const make = (...more: string[]) =>
    sluice('--json', 'keys', 'make', 'service_account', 'Finance', ...more);
  const made = await make('--role', 'billing_admin');
  expect(made.exitCode, made.errors).toBe(0);
  const { rows } = await sql<{ role: string }>`
    select role from service_accounts where name = 'Finance'`.execute(fleet.database);
  expect(rows).toEqual([{ role: 'billing_admin' }]);
  const wrong = await make('--role', 'king');
  expect(wrong.exitCode).toBe(2);
  expect(wrong.errors).toContain('Allowed choices are account_admin, billing_admin, member');
});
