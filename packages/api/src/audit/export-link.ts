/**
 * A link that opens one export for a while, without a token: the file can be handed to a browser or a tool without a
 * token, and the link stops working soon after.
 *
 * `<account>.<export>.<holder>.<expiry in Unix seconds>.<HMAC-SHA256>`: it names its export, so it need not be stored,
 * and it cannot be made or prolonged without the secret. The holder is the caller that asked for it, for the entry of
 * the download in the audit log: `u7` is a user, `s7` a service account, `u7-12` a user in session 12. A process of an
 * older version leaves the session out, and its links open too. Pure; the clock is an argument.
 */
import { createHmac, timingSafeEqual } from 'node:crypto';
import type { AuditLogExportKey, ExportReader } from '@sluice/database/audit/audit-log-exports';
import type { AccountActor } from '@sluice/database/changes/record-change';

const LINK =
  /^([1-9]\d{0,15})\.([\w-]{1,64})(?:\.([us])(\d{0,10})(?:-(\d{1,10}))?)?\.(\d{1,12})\.([\w-]{43})$/;

/** Between the clocks of two API processes. */
const CLOCK_DIFFERENCE_MS_MAX = 60_000;

export type OpenedLink =
  | ({ readonly outcome: 'opened'; readonly holder: ExportReader } & AuditLogExportKey)
  | { readonly outcome: 'expired' }
  /** Not one that was made here. */
  | { readonly outcome: 'unknown' };

export function writeExportLink(
  secret: string,
  { accountId, exportId }: AuditLogExportKey,
  { actor, sessionId = null }: Partial<ExportReader> & Pick<ExportReader, 'actor'>,
  expiresAtMs: number,
): string {
  const owner = actor.type === 'user' ? `u${actor.userId}` : `s${actor.serviceAccountId ?? ''}`;
  const held = sessionId === null ? owner : `${owner}-${sessionId}`;
  const text = `${accountId}.${exportId}.${held}.${Math.floor(expiresAtMs / 1000)}`;
  return `${text}.${sign(secret, text)}`;
}

/** @param lifetimeMs - of every link: one that expires later was made before the clock was set back, and has expired. */
export function openExportLink(
  secret: string,
  link: string,
  nowMs: number,
  lifetimeMs: number,
): OpenedLink {
  const [
    ,
    accountId = '',
    exportId = '',
    kind = '',
    id = '',
    session,
    expiry = '',
    signature = '',
  ] = LINK.exec(link) ?? [];
  if (signature === '') return { outcome: 'unknown' };
  const inSession = session === undefined ? '' : `-${session}`;
  const held = kind === '' ? [] : [`${kind}${id}${inSession}`];
  const expected = sign(secret, [accountId, exportId, ...held, expiry].join('.'));
  if (!timingSafeEqual(Buffer.from(signature), Buffer.from(expected)))
    return { outcome: 'unknown' };
  const leftMs = Number(expiry) * 1000 - nowMs;
  if (leftMs <= 0 || leftMs > lifetimeMs + CLOCK_DIFFERENCE_MS_MAX) return { outcome: 'expired' };
  const actor: AccountActor =
    kind === 'u'
      ? { type: 'user', userId: Number(id) }
      : { type: 'service_account', serviceAccountId: id === '' ? null : Number(id) };
  const holder = { actor, sessionId: session === undefined ? null : Number(session) };
  return { outcome: 'opened', accountId: Number(accountId), exportId, holder };
}

/** The purpose is signed too, so that no other signature made with the secret is a link. */
const sign = (secret: string, text: string): string =>
  createHmac('sha256', secret).update(`audit-log-export:${text}`).digest('base64url');
