/**
 * Sends the entries of the outbox.
 *
 * They are mails of signups, sign-ins and invitations, analytics events of startup applications, and, for the payment
 * provider, an account's invoice data and the trials to end. A code is drawn here, when its mail is written, so that it
 * is in no queue and no row. The event is a Pipelines `track` call whose `messageId` is the entry's key: intake takes
 * it once, however often it is sent. An entry that fails stays in the outbox and is tried again after a pause that
 * grows.
 */
import type { Database } from '@sluice/database/connection/connection';
import {
  type OutboxEntry,
  claimOutbox,
  finishOutbox,
  postponeOutbox,
} from '@sluice/database/changes/outbox';
import { STARTUP_TOPIC } from '@sluice/database/accounts/partners';
import { CUSTOMER_TOPIC, TRIAL_ENDED_TOPIC } from '@sluice/database/billing/provider-customers';
import { SIGN_IN_TOPIC, findSignIn, keepSignInCode } from '@sluice/database/users/sign-in-codes';
import { findUsersByEmail, type UserOfAddress } from '@sluice/database/users/users-of-address';
import { findAccount } from '@sluice/database/accounts/accounts';
import { INVITATION_TOPIC } from '@sluice/database/users/user-changes';
import { findUser, findUserOfEmail } from '@sluice/database/users/users';
import { SIGNUP_TOPIC, findSignup, keepSignupCode } from '@sluice/database/accounts/signups';
import { endProviderTrial, type EndTrialEffects } from './end-provider-trial.ts';
import type { Mailer } from './mailer.ts';
import { updateProviderCustomer, type TellCustomerEffects } from './update-provider-customer.ts';
import { CODE_LIFETIME_MS, hashCode, newCode } from '../accounts/signup-code.ts';

/** Target of analytics events: a Pipelines API, such as our own intake's. */
export interface AnalyticsTarget {
  readonly url: string;
  readonly writeKey: string;
}

export interface RelayEffects {
  readonly database: Database;
  readonly mailer: Pick<Mailer, 'send'>;
  /** Absent: the events wait in the outbox. */
  readonly analytics: AnalyticsTarget | undefined;
  /** Absent: there is no payment provider, and its entries wait. */
  readonly provider?: TellCustomerEffects['provider'] & EndTrialEffects['provider'];
  /** How long a call of the payment provider may take. */
  readonly providerTimeoutMs: number;
  readonly secret: string;
  /** Console's address for users (`CONSOLE_URL`). Absent: mails do not have it. */
  readonly consoleUrl?: string | undefined;
  readonly now: () => number;
  /** An entry could not be sent; never with a code or an address. */
  readonly onFailure: (
    entry: Pick<OutboxEntry, 'topic' | 'outboxId' | 'attempt'>,
    error: unknown,
  ) => void;
}

const CLAIM_COUNT_MAX = 20;
/** After this time no user waits for a code any more. */
const MAIL_GIVE_UP_AFTER_MS = 30 * 60_000;
const ANALYTICS_TIMEOUT_MS = 10_000;

const STARTUP_EVENT = 'startup_program.application_submitted';

/** Makes the step that sends due entries and returns their number. */
export function createRelay(effects: RelayEffects): () => Promise<number> {
  const { database, analytics, provider, providerTimeoutMs, now, onFailure } = effects;
  const tellers: Record<string, (entry: OutboxEntry) => Promise<void>> = {
    [SIGNUP_TOPIC]: (entry) => mailSignup(effects, entry),
    [SIGN_IN_TOPIC]: (entry) => mailSignIn(effects, entry),
    [INVITATION_TOPIC]: (entry) => mailInvitation(effects, entry),
    ...(analytics && { [STARTUP_TOPIC]: (entry: OutboxEntry) => track(analytics, entry) }),
    ...(provider && {
      [CUSTOMER_TOPIC]: (entry: OutboxEntry) =>
        updateProviderCustomer({ database, provider }, entry),
      [TRIAL_ENDED_TOPIC]: (entry: OutboxEntry) =>
        endProviderTrial({ database, provider, providerTimeoutMs }, entry),
    }),
  };
  return async () => {
    const entries = await claimOutbox(database, Object.keys(tellers), CLAIM_COUNT_MAX, now());
    await Promise.all(
      entries.map(async (entry) => {
        try {
          await tellers[entry.topic]?.(entry);
        } catch (error) {
          onFailure(entry, error);
          await postponeOutbox(database, entry, now());
          return;
        }
        await finishOutbox(database, entry.outboxId);
      }),
    );
    return entries.length;
  };
}

async function mailSignup(
  { database, mailer, secret, now }: RelayEffects,
  entry: OutboxEntry,
): Promise<void> {
  const signupId = String(entry.payload['signup_id']);
  const signup = await findSignup(database, signupId);
  const nowMs = now();
  // An empty address means that the address has had its codes.
  if (!signup || signup.email === '' || nowMs - signup.startedAt.getTime() > MAIL_GIVE_UP_AFTER_MS)
    return;
  const to = signup.email;
  const code = newCode();
  // Before the mail, so that a code that arrives is good. Also for a known address, which is never sent it: a try then
  // writes the same row, and the time of its answer does not show whether the address has an account.
  const codeHmac = hashCode(secret, 'signup code', signupId, signup.email, code);
  await keepSignupCode(database, signupId, codeHmac, nowMs + CODE_LIFETIME_MS);
  await mailer.send(
    signup.isKnown
      ? { to, subject: 'You already have an account', text: KNOWN_TEXT }
      : { to, subject: 'Your verification code', text: codeText(code) },
  );
}

async function mailSignIn(
  { database, mailer, secret, now }: RelayEffects,
  entry: OutboxEntry,
): Promise<void> {
  const signInId = String(entry.payload['sign_in_id']);
  const signIn = await findSignIn(database, signInId);
  const nowMs = now();
  // An empty address means that the address has had its codes.
  if (!signIn || signIn.email === '' || nowMs - signIn.startedAt.getTime() > MAIL_GIVE_UP_AFTER_MS)
    return;
  const code = newCode();
  // Before the mail, so that a code that arrives is good. Also for an address that is no user's: a try then writes the
  // same row, and the time of its answer does not show which addresses are users'.
  const codeHmac = hashCode(secret, 'sign-in code', signInId, signIn.email, code);
  await keepSignInCode(database, signInId, codeHmac, nowMs + CODE_LIFETIME_MS);
  // A mail would show its receiver alone, but any caller could have us mail any address.
  if (!signIn.isKnown) return;
  await mailer.send({
    to: signIn.email,
    subject: 'Your code to sign in',
    text: signInText(code, await findUsersByEmail(database, signIn.email)),
  });
}

async function mailInvitation(
  { database, mailer, consoleUrl }: RelayEffects,
  entry: OutboxEntry,
): Promise<void> {
  const accountId = Number(entry.payload['account_id']);
  const user = await findUser(database, accountId, Number(entry.payload['user_id']));
  // A user who was removed meanwhile, or has signed in, needs no mail.
  if (user?.status !== 'invited') return;
  // A user who signs in to another account gets no mail either: the code would not lead to this one.
  if ((await findUserOfEmail(database, user.email))?.user.status === 'active') return;
  const account = await findAccount(database, accountId);
  if (!account) return;
  await mailer.send({
    to: user.email,
    subject: `You are invited to ${account.name}`,
    text: invitationText(account.name, consoleUrl),
  });
}

const invitationText = (accountName: string, consoleUrl: string | undefined): string =>
  `You may sign in to the console of Sluice as a user of ${accountName}.\n\nOpen ${consoleUrl ?? 'the console, at the address that your colleagues know,'} and give this email address: a code is mailed to it.\nIf you expected no invitation, ignore this mail.\n`;

function signInText(code: string, users: readonly UserOfAddress[]): string {
  const names = users.filter(({ isInvited }) => isInvited).map(({ accountName }) => accountName);
  const target =
    names.length === 0
      ? ''
      : `It accepts the invitation to ${names.length === 1 ? '' : 'one of these accounts, which you choose: '}${names.map((name) => JSON.stringify(name)).join(', ')}.\n`;
  return `Your code to sign in is ${code}\n\n${target}It is good for 10 minutes and for one sign-in. Only you need it.\nIf you did not ask for it, ignore this mail.\n`;
}

const codeText = (code: string): string =>
  `Your verification code is ${code}\n\nIt is good for 10 minutes and for one account.\nIf you did not ask for it, ignore this mail.\n`;

const KNOWN_TEXT =
  'Somebody, probably you, tried to sign up with this address, which has an account already.\nSign in instead. If it was not you, ignore this mail.\n';

async function track({ url, writeKey }: AnalyticsTarget, entry: OutboxEntry): Promise<void> {
  const answer = await fetch(new URL('/v1/track', url), {
    method: 'POST',
    headers: {
      authorization: `Basic ${Buffer.from(`${writeKey}:`).toString('base64')}`,
      'content-type': 'application/json',
      'x-strict-mode': '1',
    },
    body: JSON.stringify({
      userId: entry.payload['email'],
      event: STARTUP_EVENT,
      messageId: entry.dedupeKey,
      timestamp: entry.createdAt.toISOString(),
      properties: entry.payload,
    }),
    signal: AbortSignal.timeout(ANALYTICS_TIMEOUT_MS),
  });
  await answer.arrayBuffer();
  if (!answer.ok) throw new Error(`the analytics target answered ${answer.status}`);
}
