/** Entries and exports of an audit log, as the services make them. */
import {
  claimExport,
  appendExportPart,
  completeExport,
} from '@sluice/database/audit/audit-log-exports';
import {
  recordChange,
  type ChangeOrigin,
  type RecordedChange,
} from '@sluice/database/changes/record-change';
import { expect } from 'vitest';
import type { ApiUnderTest } from './api-under-test.ts';
import type { Tenant } from './inserted-rows.ts';

const USER: ChangeOrigin = {
  actor: { type: 'user', userId: 7 },
  ipAddr: '10.0.1.2',
  userAgent: 'curl/8',
  requestId: 'req_1',
};

export const CHANGE: RecordedChange<'account'> = {
  objectType: 'account',
  objectId: 'the account',
  objectName: 'Acme',
  before: { name: 'A' },
  after: { name: 'B' },
};

export const START_MS = Date.parse('2026-03-01T12:00:00.000Z');

/** The entries of {@link recordEntries}, a second apart; entry n is ENTRIES[n - 1]. */
export const ENTRIES = [
  { change: {}, origin: {} },
  { change: { after: { website: 'a' } }, origin: { ipAddr: '::ffff:10.0.11.2' } },
  {
    change: { objectType: 'user', objectId: '1', before: null, after: { email: 'a' } },
    origin: {},
  },
  {
    change: { objectType: 'user', objectId: '1', before: { email: 'a' }, after: null },
    origin: { actor: { type: 'user', userId: 8 } },
  },
  {
    change: { objectType: 'user', objectId: '10', before: { role: 'member' }, after: {} },
    origin: { ipAddr: '2001:DB8::1' },
  },
  {
    change: { objectType: 'environment', objectId: '1', after: { webhook_signing_key: 'secret' } },
    origin: { actor: { type: 'service_account', serviceAccountId: 99 }, ipAddr: null },
  },
  {
    change: { after: { name: '50%' } },
    origin: { actor: { type: 'system' }, ipAddr: '100.1.1.1' },
  },
] as const;

/** Fills the log of A with {@link ENTRIES}. */
export async function recordEntries(api: ApiUnderTest): Promise<void> {
  for (const { change, origin } of ENTRIES) {
    await record(api, change, origin);
    api.clock.nowMs += 1_000;
  }
}

/** Records a change in the log of A, now, and gives its id. */
async function record(
  api: ApiUnderTest,
  change: Partial<RecordedChange> = {},
  origin: Partial<ChangeOrigin> = {},
): Promise<number> {
  const id = await api.database
    .transaction()
    .execute((transaction) =>
      recordChange(
        transaction,
        api.a.accountId,
        { ...USER, ...origin },
        { ...CHANGE, ...change },
        api.clock.nowMs,
      ),
    );
  expect(id).toBeGreaterThan(0);
  return id as number;
}

/** An export that is ordered over the API and completed with a file of `text`: its id, and the link to it. */
export async function insertExport(
  api: ApiUnderTest,
  tenant: Tenant,
  text = 'a file',
): Promise<{ readonly export_id: string; readonly link: string }> {
  const path = `/v1/accounts/${tenant.accountId}/audit_logs`;
  const ordered = await api.call('POST', `${path}/export`, { key: tenant.token, body: {} });
  const { id } = ordered.json().export;
  const key = { accountId: tenant.accountId, exportId: id };
  const claim = await claimExport(api.database, key, 60_000);
  if (claim.outcome !== 'claimed') throw new Error(claim.outcome);
  const { fencing, found } = claim;
  const part = { content: Buffer.from(text), rowCount: 1, afterId: found.untilId };
  await appendExportPart(api.database, key, fencing, part, 60_000);
  await completeExport(api.database, key, fencing, {
    sha256: Buffer.alloc(32),
    nowMs: api.clock.nowMs,
    expiresAtMs: api.clock.nowMs + 7 * 86_400_000,
  });
  const polled = await api.call('GET', `${path}/exports/${id}`, { key: tenant.token });
  return { export_id: id, link: polled.json().export.download_url.split('/').at(-1) };
}
