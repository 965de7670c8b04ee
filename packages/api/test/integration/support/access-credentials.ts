/** Every kind of credential, in force and not, with its caller's rights. */
import { hashSecret } from '@sluice/platform/secrets/secrets';
import type { Role } from '@sluice/domain/accounts/account';
import { sql } from 'kysely';
import { secretTagOf, signAccessToken } from '../../../src/auth/access-token.ts';
import { SECRET, type ApiUnderTest } from './api-under-test.ts';
import { insertKey, insertTenant, insertToken } from './inserted-rows.ts';

/** Whose account a call names in its path. */
export type AccountInPath = 'a' | 'b' | 'closed';

export interface TokenHolder {
  readonly of: AccountInPath;
  readonly role: Role;
  readonly scopes: readonly string[];
  readonly isReadOnly?: boolean;
  readonly isElsewhere?: boolean;
}

/** A key of one workspace. */
export interface KeyHolder {
  readonly of: 'workspace';
  readonly isReadOnly?: boolean;
  readonly isElsewhere?: boolean;
}

export interface Credential {
  readonly name: string;
  /** Absent: the header is not sent. */
  readonly authorization?: string;
  /** Absent: it is not in force. */
  readonly opens?: KeyHolder | TokenHolder;
  /** A's account by default. */
  readonly in?: AccountInPath;
}

/** @returns the account ids by their names. */
export async function insertCredentials(
  api: ApiUnderTest,
): Promise<Readonly<Record<AccountInPath, number>>> {
  const { database, a, b, clock } = api;
  for (const kind of ['track', 'pipelines'] as const)
    await insertKey(database, a.environmentId, kind, `${kind}_key`);
  for (const key of ['app_key_expired', 'app_key_revoked'])
    await insertKey(database, a.environmentId, 'app', key);
  const key = (name: string, limits: Parameters<typeof insertKey>[4]) =>
    insertKey(database, a.environmentId, 'app', name, limits);
  // A test calls from 127.0.0.1.
  await key('app_key_reader', { isReadOnly: true });
  await key('app_key_here', { ipAllowlist: ['192.0.2.0/24', '127.0.0.0/8'] });
  await key('app_key_elsewhere', { ipAllowlist: ['192.0.2.0/24'] });
  await key('app_key_elsewhere_reader', { isReadOnly: true, ipAllowlist: ['2001:db8::/32'] });
  const token = (name: string, given: Parameters<typeof insertToken>[3] = {}) =>
    insertToken(database, a.accountId, name, { scopes: [], ...given });
  await token('sa_live_admin');
  await token('sa_live_billing', { role: 'billing_admin' });
  await token('sa_live_member', { role: 'member' });
  await token('sa_live_meter', { role: 'member', scopes: ['usage:write'] });
  await token('sa_live_staff', { role: 'member', scopes: STAFF_SCOPES });
  await token('sa_live_reader', { isReadOnly: true, scopes: BOTH });
  await token('sa_live_elsewhere', { isReadOnly: true, ipAllowlist: ['192.0.2.0/24'] });
  await token('sa_live_expired', { expiresAt: new Date(clock.nowMs).toISOString() });
  await token('sa_live_revoked');
  const hashes = ['app_key_revoked', 'sa_live_revoked'].map(hashSecret);
  await sql`update api_credentials set revoked_at = now() where secret_hash = any (${hashes}::bytea[])`.execute(
    database,
  );
  await sql`update api_credentials set expires_at = now() where secret_hash = ${hashSecret('app_key_expired')}`.execute(
    database,
  );
  const deleted = await insertTenant(database, 'key_of_deleted');
  await sql`update environments set deleted_at = now() where account_id = ${deleted.accountId}`.execute(
    database,
  );
  const closed = await insertTenant(database, 'key_of_closed');
  await sql`update accounts set status = 'closed' where account_id = ${closed.accountId}`.execute(
    database,
  );
  return { a: a.accountId, b: b.accountId, closed: closed.accountId };
}

const STAFF_SCOPES = ['partners:write', 'fleet:read'];
const BOTH = ['usage:write', 'partners:write'];
const KEY: KeyHolder = { of: 'workspace' };
const ADMIN: TokenHolder = { of: 'a', role: 'account_admin', scopes: [] };
const MEMBER: TokenHolder = { of: 'a', role: 'member', scopes: [] };
const METER: TokenHolder = { ...MEMBER, scopes: ['usage:write'] };
const READER: TokenHolder = { ...ADMIN, scopes: BOTH, isReadOnly: true };
const ELSEWHERE: TokenHolder = { ...ADMIN, isReadOnly: true, isElsewhere: true };
const ADMIN_OF_B: TokenHolder = { ...ADMIN, of: 'b', scopes: ['usage:write'] };

const basic = (text: string): string => `Basic ${btoa(text)}`;

/** Credentials that are sent as they were given. */
const GIVEN: readonly Credential[] = [
  { name: 'none' },
  { name: 'an empty header', authorization: '' },
  { name: 'a scheme alone', authorization: 'Bearer' },
  { name: 'two tokens', authorization: 'Bearer key_of_a sa_live_admin' },
  { name: 'a token without a scheme', authorization: 'sa_live_admin' },
  { name: 'an app key as Basic', authorization: basic('key_of_a:') },
  { name: 'an account token as Basic', authorization: basic('sa_live_admin:') },
  { name: 'what nobody has', authorization: 'Bearer sa_live_unknown' },
  { name: 'an app key', authorization: 'Bearer key_of_a', opens: KEY },
  { name: "another workspace's app key", authorization: 'Bearer key_of_b', opens: KEY },
  {
    name: 'an app key that may only read',
    authorization: 'Bearer app_key_reader',
    opens: { ...KEY, isReadOnly: true },
  },
  { name: 'an app key of this network', authorization: 'Bearer app_key_here', opens: KEY },
  {
    name: 'an app key of another network',
    authorization: 'Bearer app_key_elsewhere',
    opens: { ...KEY, isElsewhere: true },
  },
  {
    name: 'an app key of another network that may only read',
    authorization: 'Bearer app_key_elsewhere_reader',
    opens: { ...KEY, isElsewhere: true, isReadOnly: true },
  },
  {
    name: 'an app key that may only read, as Basic',
    authorization: basic('app_key_reader:'),
  },
  { name: 'an app key that has expired', authorization: 'Bearer app_key_expired' },
  { name: 'an app key that is revoked', authorization: 'Bearer app_key_revoked' },
  { name: 'an app key of a deleted workspace', authorization: 'Bearer key_of_deleted' },
  { name: 'an app key of a closed account', authorization: 'Bearer key_of_closed' },
  { name: 'Track credentials', authorization: basic('site:track_key') },
  { name: 'a Track key as a token', authorization: 'Bearer track_key' },
  { name: 'a Pipelines write key', authorization: basic('pipelines_key:') },
  { name: 'a Pipelines write key as a token', authorization: 'Bearer pipelines_key' },
  { name: 'a token of an admin', authorization: 'Bearer sa_live_admin', opens: ADMIN },
  {
    name: 'a token of a billing admin',
    authorization: 'Bearer sa_live_billing',
    opens: { ...MEMBER, role: 'billing_admin' },
  },
  { name: 'a token of a member', authorization: 'Bearer sa_live_member', opens: MEMBER },
  { name: 'a token of a meter', authorization: 'Bearer sa_live_meter', opens: METER },
  {
    name: "a token of the operator's staff",
    authorization: 'Bearer sa_live_staff',
    opens: { ...MEMBER, scopes: STAFF_SCOPES },
  },
  { name: 'a token that may only read', authorization: 'Bearer sa_live_reader', opens: READER },
  {
    name: 'a token that is used from elsewhere',
    authorization: 'Bearer sa_live_elsewhere',
    opens: ELSEWHERE,
  },
  { name: 'a token that has expired', authorization: 'Bearer sa_live_expired' },
  { name: 'a token that is revoked', authorization: 'Bearer sa_live_revoked' },
  {
    name: 'a token of a closed account',
    authorization: 'Bearer sa_sandbox_key_of_closed',
    in: 'closed',
  },
  {
    name: "another account's admin, in that account",
    authorization: 'Bearer sa_sandbox_key_of_b',
    opens: ADMIN_OF_B,
    in: 'b',
  },
  {
    name: "another account's admin, in this account",
    authorization: 'Bearer sa_sandbox_key_of_b',
    opens: ADMIN_OF_B,
  },
  {
    name: 'an admin, in an account that is closed',
    authorization: 'Bearer sa_live_admin',
    opens: ADMIN,
    in: 'closed',
  },
];

/** All of them, once {@link insertCredentials} has run: access tokens are signed at the clock's time. */
export async function listCredentials(api: ApiUnderTest): Promise<readonly Credential[]> {
  const lent: Credential[] = [];
  const lend = async (
    name: string,
    from: string,
    opens?: TokenHolder,
    { claims = {}, secret = SECRET, ageMs = 0, mangle = (token: string) => token } = {},
  ): Promise<void> => {
    const secretHash = hashSecret(from);
    const { rows } = await sql<{ credentialId: number; scopes: string[]; isReadOnly: boolean }>`
      select credential_id::int as "credentialId", scopes, is_read_only as "isReadOnly"
        from api_credentials where secret_hash = ${secretHash}`.execute(api.database);
    const [row] = rows;
    const own = { accountId: api.a.accountId, secretTag: secretTagOf(secretHash), ...row! };
    const token = signAccessToken(secret, { ...own, ...claims }, api.clock.nowMs - ageMs);
    lent.push({
      name: `an access token ${name}`,
      authorization: `Bearer ${mangle(token)}`,
      ...(opens && { opens }),
    });
  };
  const unsigned = Buffer.from('{"alg":"none","typ":"JWT"}').toString('base64url');
  await lend('of an admin', 'sa_live_admin', ADMIN);
  await lend('of a meter', 'sa_live_meter', METER);
  await lend('of a version that signed without a tag', 'sa_live_meter', METER, {
    claims: { secretTag: undefined },
  });
  await lend('without its scopes', 'sa_live_meter', MEMBER, { claims: { scopes: [] } });
  await lend(
    'narrowed to reading',
    'sa_live_meter',
    { ...METER, isReadOnly: true },
    { claims: { isReadOnly: true } },
  );
  await lend('that claims scopes', 'sa_live_member', MEMBER, { claims: { scopes: BOTH } });
  await lend('that claims to write', 'sa_live_reader', READER, { claims: { isReadOnly: false } });
  await lend('that is used from elsewhere', 'sa_live_elsewhere', ELSEWHERE);
  await lend('of fifteen minutes ago', 'sa_live_admin', undefined, { ageMs: 900_000 });
  await lend('of a token that has expired', 'sa_live_expired');
  await lend('of a token that is revoked', 'sa_live_revoked');
  await lend('of a secret before', 'sa_live_admin', undefined, {
    claims: { secretTag: secretTagOf(hashSecret('before')) },
  });
  await lend("that names another's account", 'sa_live_admin', undefined, {
    claims: { accountId: api.b.accountId },
  });
  await lend('that somebody else signed', 'sa_live_admin', undefined, { secret: 'not our secret' });
  await lend('that nobody signed', 'sa_live_admin', undefined, {
    mangle: (token) => `${unsigned}.${token.split('.')[1]}.`,
  });
  await lend('without its signature', 'sa_live_admin', undefined, {
    mangle: (token) => token.slice(0, token.lastIndexOf('.') + 1),
  });
  return [...GIVEN, ...lent];
}
