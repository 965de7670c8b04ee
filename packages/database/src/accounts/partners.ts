/**
 * Partners of the startup program: they apply, the operator's staff decide, the approved are shown.
 *
 * No tenant's data. A decision stands in the audit log of the account that it was made with; who
 * applies has no account, so an application has no entry.
 */
import type { AuditState } from '@sluice/domain/accounts/audit-registry';
import { sql } from 'kysely';
import { type ChangeOrigin, recordChange } from '../changes/record-change.ts';
import type { Database, DatabaseOrTransaction } from '../connection/connection.ts';
import { appendToOutbox } from '../changes/outbox.ts';
import { type HeldCall, transactOnce } from '../changes/transact-once.ts';

export const STARTUP_TOPIC = 'analytics.startup_application';

export interface Partner {
  readonly partnerId: string;
  readonly name: string | null;
  readonly website: string | null;
  readonly logoUrl: string | null;
  readonly status: 'pending' | 'approved' | 'rejected';
  readonly createdAt: Date;
}

const COLUMNS = sql`
  partner_id as "partnerId", name, website, logo_url as "logoUrl", status, created_at as "createdAt"`;

/** By name. Index: `partners_approved`. */
export async function listApprovedPartners(database: DatabaseOrTransaction): Promise<Partner[]> {
  const { rows } = await sql<Partner>`
    select ${COLUMNS} from partners
     where status = 'approved' and name is not null order by name, partner_id`.execute(database);
  return rows;
}

export async function insertPartner(
  database: Database,
  given: Pick<Partner, 'partnerId' | 'name' | 'website' | 'logoUrl'>,
  nowMs: number,
  call?: HeldCall,
): Promise<Partner> {
  return transactOnce(
    database,
    call,
    () => true,
    async (transaction) => {
      const { rows } = await sql<Partner>`
        insert into partners (partner_id, name, website, logo_url, created_at)
        values (${given.partnerId}, ${given.name}, ${given.website}, ${given.logoUrl}, ${new Date(nowMs)})
        returning ${COLUMNS}`.execute(transaction);
      return rows[0] as Partner;
    },
  );
}

/**
 * Decides once; the same decision again is the same answer, another one is `decided`.
 *
 * @param accountId - of the account that decides.
 */
export async function decidePartner(
  database: Database,
  accountId: number,
  partnerId: string,
  status: 'approved' | 'rejected',
  origin: ChangeOrigin,
  nowMs: number,
): Promise<Partner | 'decided' | undefined> {
  const isDecided = (outcome: Partner | 'decided' | undefined): boolean =>
    typeof outcome === 'object';
  return transactOnce(database, origin.call, isDecided, async (transaction) => {
    const { rows } = await sql<Partner>`
      select ${COLUMNS} from partners where partner_id = ${partnerId} for update`.execute(
      transaction,
    );
    const [partner] = rows;
    if (!partner || partner.status === status) return partner;
    if (partner.status !== 'pending') return 'decided';
    const changed = await sql<Partner>`
      update partners set status = ${status}, decided_at = ${new Date(nowMs)}
       where partner_id = ${partnerId} returning ${COLUMNS}`.execute(transaction);
    const after = changed.rows[0] as Partner;
    await recordChange(
      transaction,
      accountId,
      origin,
      {
        objectType: 'partner_application',
        objectId: partnerId,
        objectName: after.name,
        before: auditState(partner),
        after: auditState(after),
      },
      nowMs,
    );
    return after;
  });
}

const auditState = (partner: Partner): AuditState<'partner_application'> => ({
  name: partner.name,
  website: partner.website,
  logo_url: partner.logoUrl,
  status: partner.status,
});

/**
 * Sends an application once, by its key. False if `partnerId` is not an approved partner; then no application is sent.
 */
export async function submitStartupApplication(
  database: Database,
  application: {
    readonly key: string;
    readonly partnerId: string | null;
    readonly payload: Readonly<Record<string, unknown>>;
  },
  nowMs: number,
): Promise<boolean> {
  return database.transaction().execute(async (transaction) => {
    if (application.partnerId !== null) {
      const { rows } = await sql`
        select from partners where partner_id = ${application.partnerId} and status = 'approved'`.execute(
        transaction,
      );
      if (rows.length === 0) return false;
    }
    const { key, payload } = application;
    await appendToOutbox(transaction, { topic: STARTUP_TOPIC, dedupeKey: key, payload }, nowMs);
    return true;
  });
}
