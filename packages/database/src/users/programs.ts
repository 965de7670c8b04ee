/**
 * Programs that act for a user, who has let them in (`device-logins.ts`).
 *
 * A program has a token and, if the user chose a workspace, a key that names the token (`with_credential_id`). The id of
 * the program is the token's. Both end together, each with its entry of the audit log. Index, unless a
 * statement names another: `api_credentials_by_user`.
 */
import { sql } from 'kysely';
import { revokeCredentials } from '../accounts/api-credential-changes.ts';
import type { ChangeOrigin } from '../changes/record-change.ts';
import type { Database, DatabaseOrTransaction, Transaction } from '../connection/connection.ts';

/** In force at a time for one user: more than a person has machines. */
const PROGRAMS_OF_USER_MAX = 10;

const PROGRAM_ID = sql`coalesce(with_credential_id, credential_id)`;

export interface ProgramOwner {
  readonly accountId: number;
  readonly userId: number;
}

export interface Program {
  readonly programId: number;
  readonly name: string;
  /** The workspace of its key, if it has one in force. */
  readonly environmentId: number | null;
  readonly createdAt: Date;
  readonly expiresAt: Date;
  /** Last use of the token. The use of keys is not kept. */
  readonly lastUsedAt: Date | null;
  readonly lastUsedIp: string | null;
}

/** Programs with a token or a key in force, the newest first. At most {@link PROGRAMS_OF_USER_MAX}. */
export async function listPrograms(
  database: DatabaseOrTransaction,
  { accountId, userId }: ProgramOwner,
): Promise<Program[]> {
  const { rows } = await sql<Program>`
    select ${PROGRAM_ID}::int as "programId", max(name) as name, max(environment_id) as "environmentId",
           min(created_at) as "createdAt", max(expires_at) as "expiresAt", max(last_used_at) as "lastUsedAt",
           max(last_used_ip) as "lastUsedIp"
      from api_credentials
     where account_id = ${accountId} and for_user_id = ${userId} and revoked_at is null and expires_at > now()
     group by 1 order by 1 desc limit ${PROGRAMS_OF_USER_MAX}`.execute(database);
  return rows;
}

/** Ends one program of the user. @returns false if the user has no such program in force. */
export async function endProgram(
  database: Database,
  { accountId, userId }: ProgramOwner,
  programId: number,
  origin: ChangeOrigin,
  nowMs: number,
): Promise<boolean> {
  return database.transaction().execute(async (transaction) => {
    const which = sql`for_user_id = ${userId} and ${PROGRAM_ID} = ${programId}`;
    return (await revokeCredentials(transaction, accountId, which, origin, nowMs)) > 0;
  });
}

/**
 * Ends the program that has this token. The statement has no tenant, because the token identifies it. Index:
 * `api_credentials_by_secret`.
 *
 * @param secretHash - SHA-256 of the token.
 * @returns false if it is no program's token, or not in force.
 */
export async function endProgramOfToken(
  database: Database,
  secretHash: Buffer,
  call: Pick<ChangeOrigin, 'ipAddr' | 'userAgent' | 'requestId'>,
  nowMs: number,
): Promise<boolean> {
  const { rows } = await sql<
    ProgramOwner & { readonly programId: number; readonly serviceAccountId: number }
  >`
    select account_id::int as "accountId", for_user_id as "userId", credential_id::int as "programId",
           service_account_id as "serviceAccountId"
      from api_credentials
     where kind = 'service_account' and secret_hash = ${secretHash} and coalesce(site_id, '') = ''
       and for_user_id is not null and revoked_at is null`.execute(database);
  const [program] = rows;
  if (!program) return false;
  const { programId, serviceAccountId } = program;
  const actor = { type: 'service_account', serviceAccountId } as const;
  const origin = { ...call, actor, credentialId: programId };
  return endProgram(database, program, programId, origin, nowMs);
}

/**
 * Ends all programs of a user, and the logins that the user has decided and no program has collected yet. In the
 * transaction that is the reason. Indexes: also `device_logins_by_user`.
 *
 * @returns the number of programs that were in force.
 */
export async function endProgramsOfUser(
  transaction: Transaction,
  { accountId, userId }: ProgramOwner,
  origin: ChangeOrigin,
  nowMs: number,
): Promise<number> {
  await sql`
    delete from device_logins where account_id = ${accountId} and user_id = ${userId}`.execute(
    transaction,
  );
  const owner = { accountId, userId };
  return endAllBut(transaction, owner, 0, origin, nowMs);
}

/** Ends the oldest programs of a user who lets another one in, so that {@link PROGRAMS_OF_USER_MAX} are in force with it. */
export async function makeRoomForProgram(
  transaction: Transaction,
  owner: ProgramOwner,
  origin: ChangeOrigin,
  nowMs: number,
): Promise<void> {
  await endAllBut(transaction, owner, PROGRAMS_OF_USER_MAX - 1, origin, nowMs);
}

async function endAllBut(
  transaction: Transaction,
  { accountId, userId }: ProgramOwner,
  keptCount: number,
  origin: ChangeOrigin,
  nowMs: number,
): Promise<number> {
  const { rows } = await sql<{ programId: number }>`
    select ${PROGRAM_ID}::int as "programId" from api_credentials
     where account_id = ${accountId} and for_user_id = ${userId} and revoked_at is null and expires_at > now()
     group by 1 order by 1 desc offset ${keptCount}`.execute(transaction);
  const programIds = rows.map(({ programId }) => programId);
  if (programIds.length === 0) return 0;
  const which = sql`for_user_id = ${userId} and ${PROGRAM_ID} = any(${programIds}::bigint[])`;
  await revokeCredentials(transaction, accountId, which, origin, nowMs);
  return programIds.length;
}
