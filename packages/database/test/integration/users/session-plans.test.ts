/** Query plans of sessions, second factors and programs among thousands of accounts. */
import type { ChangeOrigin } from '@sluice/database/changes/record-change';
import type { Database } from '@sluice/database/connection/connection';
import { createTestDatabase } from '@sluice/database/testing/testing';
import { statementsSentBy } from '@sluice/database/testing/statements-sent';
import { findConsoleSession, findIdToken } from '@sluice/database/users/console-sessions';
import {
  clearDeviceLogins,
  decideDeviceLogin,
  findWaitingDevice,
  pollDeviceLogin,
  startDeviceLogin,
} from '@sluice/database/users/device-logins';
import {
  deleteIdentityProvider,
  findProviderOfDomain,
  noteDomainMissing,
  putIdentityProvider,
} from '@sluice/database/users/identity-providers';
import {
  beginProviderSignIn,
  clearProviderSignIns,
  openProviderSession,
  takeProviderSignIn,
} from '@sluice/database/users/provider-openings';
import { noteDomainProved, takeDueDomains } from '@sluice/database/users/provider-domains';
import { endProgramOfToken, listPrograms } from '@sluice/database/users/programs';
import { giveUpSecondFactor, resetSecondFactor } from '@sluice/database/users/second-factors';
import { endUserSessions, removeUser } from '@sluice/database/users/user-changes';
import { sql } from 'kysely';
import { createHash } from 'node:crypto';
import { beforeAll, expect, test } from 'vitest';
import { fillAccounts } from '../support/account-fill.ts';
import { planOf } from '../support/explain.ts';
import { FILL_TIMEOUT_MS } from '../support/fill-timeout.ts';

const NOW_MS = Date.parse('2026-03-01T12:00:00Z');
const COUNT = 5_000;
const ORIGIN: ChangeOrigin = { actor: { type: 'system' } };
const BEGUN = { accountId: 8, issuer: 'https://login8.example', clientId: 'sluice' };
const HASHES = {
  stateHash: createHash('sha256').update('state').digest(),
  browserHash: createHash('sha256').update('browser').digest(),
};
const PERSON = {
  ...BEGUN,
  subject: '8',
  email: '8@8.example',
  idToken: 'encrypted',
  firstName: '',
  lastName: '',
};
const DUE = { accountId: 11, domain: '11.example', recordText: 'proof' };
const PROVIDER = {
  issuer: 'https://login.example',
  clientId: 'sluice',
  emailDomains: ['9.example', '9a.example'],
  isRequired: false,
  countsAsTwoFactors: true,
  newUserRole: 'member',
  newUserEnvironmentIds: [9],
} as const;
const PROOF = { domains: PROVIDER.emailDomains, recordText: 'proof' };
const sha256 = (text: string): Buffer => createHash('sha256').update(text).digest();
const HASH_OF_4 = createHash('sha256').update('4').digest();

let database: Database;
beforeAll(async () => {
  ({ database } = await createTestDatabase());
  await fillAccounts(database, COUNT);
}, FILL_TIMEOUT_MS);

test.each<[string, number, (database: Database) => Promise<unknown>]>([
  ['a session', 1, (db) => findConsoleSession(db, 4, HASH_OF_4, HASH_OF_4, true)],
  ['sessions that are ended', 4, (db) => endUserSessions(db, 4, 4, ORIGIN, NOW_MS)],
  [
    'a factor that is reset',
    4,
    (db) => resetSecondFactor(db, { accountId: 5, userId: 5 }, ORIGIN, NOW_MS),
  ],
  [
    'a factor that is removed',
    6,
    (db) => giveUpSecondFactor(db, { accountId: 6, userId: 6 }, { step: 1 }, ORIGIN, NOW_MS),
  ],
  ['a user who is removed', 9, (db) => removeUser(db, 7, 7, ORIGIN, NOW_MS)],
  [
    'a sign-in by a provider',
    12,
    async (db) => {
      await findProviderOfDomain(db, '8.example');
      await beginProviderSignIn(db, { ...BEGUN, ...HASHES, returnPath: '/live' });
      await takeProviderSignIn(db, { accountId: 8, ...HASHES });
      await openProviderSession(
        db,
        PERSON,
        createHash('sha256').update('new').digest(),
        {},
        NOW_MS,
      );
      await clearProviderSignIns(db, 10);
    },
  ],
  [
    'a provider that is changed',
    9,
    (db) => putIdentityProvider(db, 9, PROVIDER, PROOF, 'encrypted', ORIGIN, NOW_MS),
  ],
  ['a provider that is removed', 5, (db) => deleteIdentityProvider(db, 10, ORIGIN, NOW_MS)],
  [
    'a domain whose record is gone',
    11,
    async (db) => {
      await sql`
        update identity_provider_domains set check_due_at = now() where domain = '11.example'`.execute(
        db,
      );
      expect(await takeDueDomains(db, 20)).toHaveLength(1);
      await noteDomainProved(db, DUE);
      expect(await noteDomainMissing(db, DUE, NOW_MS)).toBe(false);
      expect(await noteDomainMissing(db, DUE, NOW_MS)).toBe(true);
    },
  ],
  [
    'a program that a user lets in',
    15,
    async (db) => {
      const started = { deviceHash: sha256('new device'), codeHash: sha256('new code') };
      await startDeviceLogin(db, { ...started, clientName: 'a', ipAddr: '10.0.0.1' });
      expect(await findWaitingDevice(db, started.codeHash)).toBeDefined();
      const decision = {
        accountId: 12,
        userId: 12,
        environmentId: 12,
        isApproved: true,
        sessionId: 1,
      };
      expect(await decideDeviceLogin(db, started.codeHash, decision)).toBe(true);
      const secretOf = (text: string) => ({ hash: sha256(text), hint: 'hint', text });
      const secrets = { token: secretOf('new token'), key: secretOf('new key') };
      const asked = [db, started.deviceHash, () => secrets, {}, NOW_MS] as const;
      expect(await pollDeviceLogin(...asked)).toMatchObject({ outcome: 'approved' });
      await clearDeviceLogins(db, 10);
    },
  ],
  [
    'programs that are listed and ended',
    5,
    async (db) => {
      expect(await listPrograms(db, { accountId: 13, userId: 13 })).toHaveLength(1);
      expect(await endProgramOfToken(db, sha256('program 13'), {}, NOW_MS)).toBe(true);
    },
  ],
  ['an ID token', 1, (db) => findIdToken(db, 4, HASH_OF_4)],
])('%s: every statement by index', async (_name, countMin, use) => {
  const sent = await statementsSentBy(() => use(database));
  expect(sent.length).toBeGreaterThanOrEqual(countMin);
  for (const statement of sent) {
    const nodes = await planOf(database, statement);
    const scanned = nodes.filter((node) => node['Node Type'] === 'Seq Scan');
    expect(
      scanned.map((node) => node['Relation Name']),
      statement.text,
    ).toEqual([]);
  }
});
