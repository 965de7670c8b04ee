/**
 * `sluice users invite|code|reset|end-sessions|without-provider EMAIL`: users of the console, by the database of `DATABASE_URL`. A program of
 * the operator's and not of the API: for the first user of an account without one, and for users who are locked out.
 * Without an SMTP server the API writes the mails of the sign-in to its `MAIL_DIRECTORY`.
 */
import type { Database } from '@sluice/database/connection/connection';
import { listEnvironmentIds } from '@sluice/database/accounts/environments';
import { requireNoProvider } from '@sluice/database/users/identity-providers';
import { resetSecondFactor } from '@sluice/database/users/second-factors';
import { endUserSessions, inviteUser, type UserRefusal } from '@sluice/database/users/user-changes';
import { findUsersByEmail } from '@sluice/database/users/users-of-address';
import { keepOperatorCode } from '@sluice/database/users/sign-in-codes';
import { findUserOfEmail } from '@sluice/database/users/users';
import { ROLES, type Role } from '@sluice/domain/accounts/account';
import { isEmail } from '@sluice/domain/value-rules/identifier-rule';
import { printable, printableJson } from '@sluice/domain/values/printable';
import { hashSecret } from '@sluice/platform/secrets/secrets';
import { randomInt } from 'node:crypto';
import { actOnDatabase, databaseSettings, readWords } from './act-on-database.ts';

const USAGE =
  'usage: sluice users invite <email> --account <id> [--role <role>], sluice users code <email> [--account <id>], or sluice users reset|end-sessions|without-provider <email>';
/** Too long to be guessed, so it needs no limit of tries. */
const CODE_LENGTH = 16;
const CODE_LIFETIME_MS = 10 * 60_000;
const BY_OPERATOR = { actor: { type: 'system' } } as const;

const { values, positionals } = readWords(USAGE, {
  options: {
    json: { type: 'boolean', default: false },
    account: { type: 'string' },
    role: { type: 'string', default: 'account_admin' },
  },
  allowPositionals: true,
});
const [action, email = '', ...rest] = positionals;
const accountId = Number(values.account);
const role = ROLES.find((each) => each === values.role);
const isInvitation = action === 'invite' && Number.isSafeInteger(accountId) && role !== undefined;
if (
  rest.length > 0 ||
  !isEmail(email) ||
  (!isInvitation && !['code', 'reset', 'end-sessions', 'without-provider'].includes(action ?? ''))
) {
  console.error(USAGE);
  process.exit(2);
}
const REFUSALS: Readonly<Record<UserRefusal, string>> = {
  email_taken: `${printable(email)} is a user already`,
  no_account: `there is no open account ${accountId}`,
  no_workspace: 'a workspace was deleted meanwhile: try again',
  last_admin: 'the account would have no account_admin',
  owner: 'the user is the owner of the account',
  no_user: 'there is no such user',
};

await actOnDatabase('users', databaseSettings, (database) => {
  if (isInvitation) return invite(database, role);
  if (action === 'without-provider') return liftProvider(database);
  if (action === 'code') return makeCode(database);
  return action === 'reset' ? reset(database) : endSessions(database);
});

/** With all workspaces of the account. */
async function invite(database: Database, wanted: Role): Promise<void> {
  const found = await findUserOfEmail(database, email);
  if (found?.user.status === 'active' && found.accountId !== accountId)
    throw new Error(`${printable(email)} is a user already, of account ${found.accountId}`);
  const user = await inviteUser(
    database,
    accountId,
    {
      email,
      firstName: '',
      lastName: '',
      role: wanted,
      environmentIds: await listEnvironmentIds(database, accountId),
    },
    BY_OPERATOR,
    Date.now(),
  );
  if (typeof user === 'string') throw new Error(REFUSALS[user]);
  say(
    { account_id: accountId, user_id: user.userId, email },
    `${printable(email)} is invited as ${wanted} of account ${accountId}: open the console and give this address, to which a code is mailed`,
  );
}

/**
 * A code in place of a mailed one, for a user whom no mail reaches or for whom strangers ask for all codes. Of several
 * accounts that invite the address, the operator names the one whose audit log has the entry.
 */
async function makeCode(database: Database): Promise<void> {
  const asked = values.account === undefined ? undefined : accountId;
  const users = await findUsersByEmail(database, email, asked);
  const [user] = users;
  if (!user) throw new Error(REFUSALS.no_user);
  if (users.length > 1)
    throw new Error(
      `the accounts ${users.map((each) => each.accountId).join(', ')} invite ${printable(email)}: name one with --account`,
    );
  const { accountId: ofAccount } = user;
  const code = Array.from({ length: CODE_LENGTH }, () => randomInt(10)).join('');
  const nowMs = Date.now();
  const kept = {
    accountId: ofAccount,
    userId: user.userId,
    email,
    codeHash: hashSecret(code),
    expiresAtMs: nowMs + CODE_LIFETIME_MS,
  };
  await keepOperatorCode(database, kept, BY_OPERATOR, nowMs);
  say(
    { account_id: ofAccount, user_id: user.userId, code, expires_in: CODE_LIFETIME_MS / 1000 },
    `${code} signs ${printable(email)} in for 10 minutes, once: open the console, give the address, and type this code in place of the mailed one`,
  );
}

/** Takes the second factor, and with it all sessions and programs. */
async function reset(database: Database): Promise<void> {
  const { accountId: ofAccount, user } = await requireUser(database);
  const key = { accountId: ofAccount, userId: user.userId };
  const isReset = await resetSecondFactor(database, key, BY_OPERATOR, Date.now());
  say(
    { account_id: ofAccount, user_id: user.userId, reset: isReset },
    isReset
      ? `the second factor of ${printable(email)} is removed, and the sessions and programs are ended`
      : `${printable(email)} has no second factor`,
  );
}

async function endSessions(database: Database): Promise<void> {
  const { accountId: ofAccount, user } = await requireUser(database);
  const ended = await endUserSessions(database, ofAccount, user.userId, BY_OPERATOR, Date.now());
  const { sessionCount = 0, programCount = 0 } = ended ?? {};
  say(
    {
      account_id: ofAccount,
      user_id: user.userId,
      ended: sessionCount,
      programs_ended: programCount,
    },
    `${sessionCount} sessions and ${programCount} programs of ${printable(email)} are ended`,
  );
}

/** For an account whose identity provider is gone, or refuses everyone. */
async function liftProvider(database: Database): Promise<void> {
  const { accountId: ofAccount } = await requireUser(database);
  const isLifted = await requireNoProvider(database, ofAccount, BY_OPERATOR, Date.now());
  say(
    { account_id: ofAccount, lifted: isLifted },
    isLifted
      ? `account ${ofAccount} does not require its identity provider any more: mailed codes open the console`
      : `account ${ofAccount} requires no identity provider`,
  );
}

async function requireUser(database: Database) {
  const found = await findUserOfEmail(database, email);
  if (!found) throw new Error(`no user has the address ${printable(email)}`);
  return found;
}

function say(document: object, text: string): void {
  console.log(values.json ? printableJson(document) : text);
}
