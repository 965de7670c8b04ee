/**
 * Plans of Postgres for every statement of the account surface. Each account is one of five thousand in its tables. The
 * test takes all statements of each transaction, as they are really sent.
 */
import { isBuilderFromTrial } from '@sluice/database/billing/account-plans';
import {
  activateProduct,
  requireTwoFactor,
  updateAccount,
  updateAddress,
} from '@sluice/database/accounts/account-changes';
import {
  findAccountToken,
  findAccountTokenById,
  recordCredentialUse,
} from '@sluice/database/accounts/account-tokens';
import { findAccount, findAccountByEnvironment } from '@sluice/database/accounts/accounts';
import {
  createCredential,
  revokeCredential,
  rotateCredential,
} from '@sluice/database/accounts/api-credential-changes';
import { findCredential, listCredentials } from '@sluice/database/accounts/api-credentials';
import {
  findAuditLogExport,
  findExportPart,
  listExportsToRun,
  orderAuditLogExport,
  clearExpiredExport,
} from '@sluice/database/audit/audit-log-exports';
import { findAuditLog, listWholeAuditLogs } from '@sluice/database/audit/audit-log-reads';
import type { ChangeOrigin } from '@sluice/database/changes/record-change';
import { clearCallCounts, takeCalls, takeCallsOfEach } from '@sluice/database/changes/call-counts';
import { hasWritten, noteWrite } from '@sluice/database/changes/recent-writes';
import type { Database } from '@sluice/database/connection/connection';
import { updateEnvironment } from '@sluice/database/accounts/environments';
import {
  claimIdempotencyKey,
  clearIdempotencyKeys,
  keepIdempotentAnswer,
  releaseIdempotencyKey,
} from '@sluice/database/changes/idempotency-keys';
import {
  claimOutbox,
  clearOutbox,
  findOldestUntold,
  finishOutbox,
  postponeOutbox,
} from '@sluice/database/changes/outbox';
import {
  decidePartner,
  insertPartner,
  listApprovedPartners,
  submitStartupApplication,
} from '@sluice/database/accounts/partners';
import { findReceipt } from '@sluice/database/billing/receipts';
import {
  findProviderCustomer,
  insertProviderCustomer,
  isAccountClosed,
  listClosedCustomers,
  noteSubscriptionsEnded,
} from '@sluice/database/billing/provider-customers';
import {
  clearProviderEvents,
  findOldestWaitingEvent,
} from '@sluice/database/billing/provider-events';
import { listBoughtPlanPrices } from '@sluice/database/billing/earlier-purchases';
import {
  findPendingPurchase,
  findPurchaseWorkflow,
  findPurchaseOfInvoice,
  listDuePurchases,
  listPendingPurchases,
  listPurchaseWorkflows,
  listPurchasesWithPaymentDue,
} from '@sluice/database/billing/purchase-workflows';
import {
  clearSignups,
  countSignupAttempt,
  createAccount,
  findSignup,
  keepSignupCode,
  startSignup,
} from '@sluice/database/accounts/signups';
import { createTestDatabase } from '@sluice/database/testing/testing';
import type { HeldCall } from '@sluice/database/changes/transact-once';
import { listUsers } from '@sluice/database/users/users';
import { beforeAll, expect, test } from 'vitest';
import { fillAccounts } from '../support/account-fill.ts';
import { planOf } from '../support/explain.ts';
import { FILL_TIMEOUT_MS } from '../support/fill-timeout.ts';
import { statementsSentBy } from '@sluice/database/testing/statements-sent';

const ACCOUNT = 2_500;
const NOW_MS = Date.parse('2026-03-01T12:00:00Z');
const COUNT = 5_000;

let database: Database;
beforeAll(async () => {
  ({ database } = await createTestDatabase());
  await fillAccounts(database, COUNT);
}, FILL_TIMEOUT_MS);

const ORIGIN: ChangeOrigin = { actor: { type: 'system' } };
const SECRET = { text: 'a', hash: Buffer.alloc(32, 1), hint: 'a' };
const KEY = { principal: `credential ${ACCOUNT}`, keyHash: Buffer.from('a') };
const CALL: HeldCall = { ...KEY, encrypt: (content) => content, decrypt: (encrypted) => encrypted };
const TIMES = { nowMs: NOW_MS, lockedUntilMs: NOW_MS, forgottenBeforeMs: 0 };
const EXPORT = { accountId: ACCOUNT, exportId: `exp_${ACCOUNT}` };
const ADDRESS = {
  company: null,
  line1: 'a',
  line2: null,
  city: 'a',
  state: null,
  postal_code: null,
  country: 'DE',
  tax_id: null,
};

test.each<[string, (database: Database) => Promise<unknown>]>([
  ['a token by its secret', (db) => findAccountToken(db, Buffer.alloc(32, 9))],
  ['a token by its id', (db) => findAccountTokenById(db, ACCOUNT, ACCOUNT)],
  ['the use of a token', (db) => recordCredentialUse(db, ACCOUNT, ACCOUNT, '10.0.0.1', NOW_MS)],
  ['calls that a token makes', (db) => takeCalls(db, `token ${ACCOUNT}`, 1, NOW_MS, 1_000)],
  [
    'wrong tokens of addresses',
    (db) => takeCallsOfEach(db, [{ subject: `token ${ACCOUNT}`, count: 1 }], NOW_MS, 1_000),
  ],
  ['a change that is noted', (db) => noteWrite(db, `credential ${ACCOUNT}`)],
  ['whether a caller has changed something', (db) => hasWritten(db, `token ${ACCOUNT}`, 5_000)],
  ['counts to be cleared', (db) => clearCallCounts(db, NOW_MS - 43_100_000, 10)],
  ['an account', (db) => findAccount(db, ACCOUNT)],
  ['the account of a workspace', (db) => findAccountByEnvironment(db, ACCOUNT, ACCOUNT)],
  [
    'settings, with an owner',
    (db) => updateAccount(db, ACCOUNT, { name: 'B', ownerUserId: ACCOUNT }, ORIGIN, NOW_MS),
  ],
  [
    'settings, by a call with a key',
    (db) => updateAccount(db, ACCOUNT, { name: 'C' }, { ...ORIGIN, call: CALL }, NOW_MS),
  ],
  ['an address', (db) => updateAddress(db, ACCOUNT, ADDRESS, ORIGIN, NOW_MS)],
  [
    'settings of a workspace',
    (db) => updateEnvironment(db, ACCOUNT, ACCOUNT, { phoneIdentifies: true }, ORIGIN, NOW_MS),
  ],
  ['two-factor authentication', (db) => requireTwoFactor(db, ACCOUNT, true, ORIGIN, NOW_MS)],
  ['a product', (db) => activateProduct(db, ACCOUNT, 'journeys', ORIGIN, NOW_MS)],
  ['users', (db) => listUsers(db, ACCOUNT, 100)],
  ['credentials', (db) => listCredentials(db, ACCOUNT, undefined, NOW_MS, 10)],
  ['credentials of a workspace', (db) => listCredentials(db, ACCOUNT, ACCOUNT, NOW_MS, 10)],
  ['a credential', (db) => findCredential(db, ACCOUNT, ACCOUNT)],
  [
    'a new credential',
    (db) =>
      createCredential(
        db,
        ACCOUNT,
        {
          kind: 'pipelines',
          name: 'a',
          environmentId: ACCOUNT,
          siteId: null,
          role: null,
          scopes: [],
          ipAllowlist: [],
          isReadOnly: false,
          expiresAt: null,
          secret: SECRET,
        },
        ORIGIN,
        NOW_MS,
      ),
  ],
  [
    'a new token',
    (db) =>
      createCredential(
        db,
        ACCOUNT,
        {
          kind: 'service_account',
          name: 'a',
          environmentId: null,
          siteId: null,
          role: 'member',
          scopes: [],
          ipAllowlist: [],
          isReadOnly: false,
          expiresAt: null,
          secret: { ...SECRET, hash: Buffer.alloc(32, 4) },
        },
        ORIGIN,
        NOW_MS,
      ),
  ],
  [
    'a new secret',
    (db) =>
      rotateCredential(
        db,
        ACCOUNT,
        ACCOUNT,
        { ...SECRET, hash: Buffer.alloc(32, 2) },
        ORIGIN,
        NOW_MS,
      ),
  ],
  ['a revocation', (db) => revokeCredential(db, ACCOUNT, ACCOUNT, ORIGIN, NOW_MS)],
  ['a receipt', (db) => findReceipt(db, ACCOUNT, `receipt_${ACCOUNT}`)],
  ['a key to be claimed', (db) => claimIdempotencyKey(db, KEY, Buffer.from('b'), TIMES)],
  ['a key to be released', (db) => releaseIdempotencyKey(db, KEY)],
  ['an answer to be kept', (db) => keepIdempotentAnswer(db, KEY, Buffer.from('a'))],
  ['keys to be cleared', (db) => clearIdempotencyKeys(db, NOW_MS - 43_100_000, 10)],
  [
    'the start of a signup',
    (db) =>
      startSignup(
        db,
        { email: '77@signup.example', ip: '10.0.0.77' },
        { startsPerHourAndIp: 20, codesPerHourAndEmail: 3, failuresPerDayAndEmail: 100 },
        NOW_MS,
      ),
  ],
  ['a signup', (db) => findSignup(db, '77')],
  ['the code of a signup', (db) => keepSignupCode(db, '77', Buffer.from('a'), NOW_MS)],
  ['signups that are over', (db) => clearSignups(db, NOW_MS, 10)],
  ['a try at a code', (db) => countSignupAttempt(db, '78@signup.example', NOW_MS)],
  [
    'an account to be made',
    (db) =>
      createAccount(
        db,
        {
          signupId: '79',
          email: '79@signup.example',
          companyName: 'A',
          firstName: 'A',
          lastName: 'B',
          dataCenter: 'us',
          currency: 'usd',
          isSandbox: false,
          token: { ...SECRET, hash: Buffer.alloc(32, 3) },
          tokenScopes: [],
          webhookSigningKey: 'key',
        },
        {},
        NOW_MS,
      ),
  ],
  ['partners that are approved', (db) => listApprovedPartners(db)],
  [
    'a new partner',
    (db) =>
      insertPartner(db, { partnerId: 'new', name: null, website: null, logoUrl: null }, NOW_MS),
  ],
  [
    'a decision on a partner',
    (db) => decidePartner(db, ACCOUNT, 'partner_77', 'rejected', ORIGIN, NOW_MS),
  ],
  [
    'an application with a partner',
    (db) =>
      submitStartupApplication(db, { key: 'a', partnerId: 'partner_500', payload: {} }, NOW_MS),
  ],
  ['what is due in the outbox', (db) => claimOutbox(db, ['signup.mail'], 5, NOW_MS)],
  [
    'an entry of the outbox that could not be told',
    (db) => postponeOutbox(db, { outboxId: '77', attempt: 1 }, NOW_MS),
  ],
  ['an entry of the outbox that is told', (db) => finishOutbox(db, '77')],
  ['told entries of the outbox to be cleared', (db) => clearOutbox(db, NOW_MS - 43_100_000, 10)],
  ['the oldest entry of the outbox that is not told', (db) => findOldestUntold(db, NOW_MS)],
  ['events of the vendor to be cleared', (db) => clearProviderEvents(db, NOW_MS - 43_100_000, 10)],
  ['the oldest event of the vendor that waits', (db) => findOldestWaitingEvent(db)],
  ['whether a trial was left for the Builder plan', (db) => isBuilderFromTrial(db, ACCOUNT)],
  ['a purchase', (db) => findPurchaseWorkflow(db, ACCOUNT, `run_${ACCOUNT}`)],
  ['a purchase by its invoice', (db) => findPurchaseOfInvoice(db, ACCOUNT, 'in_77')],
  ['the purchase in a lane', (db) => findPendingPurchase(db, ACCOUNT, 'checkout')],
  [
    'purchases',
    (db) => listPurchaseWorkflows(db, ACCOUNT, { createdAtMs: NOW_MS, runId: 'run_1' }, 10),
  ],
  ['purchases under way', (db) => listPendingPurchases(db, ACCOUNT)],
  ['purchases whose time has come', (db) => listDuePurchases(db, NOW_MS, 10)],
  ['the plans that were bought', (db) => listBoughtPlanPrices(db, ACCOUNT)],
  ['purchases that a bank has to pay for', (db) => listPurchasesWithPaymentDue(db, NOW_MS, 10)],
  ['closed accounts that may be charged still', (db) => listClosedCustomers(db, NOW_MS, 10)],
  ['whether an account is closed', (db) => isAccountClosed(db, ACCOUNT)],
  ['that nothing is left to charge', (db) => noteSubscriptionsEnded(db, ACCOUNT, true, NOW_MS)],
  ['the customer at the vendor', (db) => findProviderCustomer(db, ACCOUNT)],
  [
    'a new customer at the vendor',
    (db) =>
      db
        .transaction()
        .execute((transaction) => insertProviderCustomer(transaction, ACCOUNT, 'cus_new', NOW_MS)),
  ],
  ['an entry of the audit log', (db) => findAuditLog(db, ACCOUNT, 1)],
  [
    'entries for an export',
    (db) => listWholeAuditLogs(db, ACCOUNT, {}, { after: 0, until: 10, limit: 10 }),
  ],
  ['an export', (db) => findAuditLogExport(db, EXPORT)],
  ['a part of an export', (db) => findExportPart(db, EXPORT, 1)],
  [
    'a new export',
    (db) =>
      orderAuditLogExport(
        db,
        { accountId: ACCOUNT, exportId: 'exp_new', format: 'csv', filter: {} },
        ORIGIN,
        NOW_MS,
      ),
  ],
  [
    'exports that wait',
    (db) => listExportsToRun(db, { attemptsMax: 3, expiresAtMs: NOW_MS, limit: 10 }),
  ],
  [
    'an export that has expired',
    (db) => clearExpiredExport(db, Date.parse('2026-03-01T00:05:00Z')),
  ],
])('%s: every statement by index', async (_name, use) => {
  const sent = await statementsSentBy(() => use(database));
  expect(sent.length).toBeGreaterThan(0);
  for (const statement of sent) {
    const nodes = await planOf(database, statement);
    const scanned = nodes.filter((node) => node['Node Type'] === 'Seq Scan');
    expect(
      scanned.map((node) => node['Relation Name']),
      statement.text,
    ).toEqual([]);
  }
});
