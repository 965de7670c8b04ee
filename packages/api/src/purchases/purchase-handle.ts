/**
 * The opaque handle of a credit purchase: it names its own payment method type, so one status endpoint serves both, and
 * it cannot be forged. `pur_` + base64url of payment method type, workflow and a truncated HMAC bound to the account.
 */
import { createHmac, timingSafeEqual } from 'node:crypto';
import type { PaymentMethodType } from '@sluice/domain/billing/purchase-workflow';

const PREFIX = 'pur_';
const TAG_LENGTH = 22;

export function writePurchaseHandle(
  secret: string,
  purchase: {
    readonly accountId: number;
    readonly rail: PaymentMethodType;
    readonly runId: string;
  },
): string {
  const text = `1.${purchase.rail}.${purchase.runId}`;
  return (
    PREFIX + Buffer.from(`${text}.${tag(secret, purchase.accountId, text)}`).toString('base64url')
  );
}

/** Takes the one form that `writePurchaseHandle` writes. @returns undefined if we did not make it for this account. */
export function readPurchaseHandle(
  secret: string,
  accountId: number,
  handle: string,
): { readonly rail: PaymentMethodType; readonly runId: string } | undefined {
  if (!handle.startsWith(PREFIX)) return undefined;
  const decoded = Buffer.from(handle.slice(PREFIX.length), 'base64url').toString('utf8');
  // Decoding forgives padding, the other alphabet and characters of neither.
  if (handle !== PREFIX + Buffer.from(decoded).toString('base64url')) return undefined;
  const match = /^(1\.(card|invoiced)\.([\w-]{1,64}))\.([\w-]{22})$/.exec(decoded);
  if (!match) return undefined;
  const [, text = '', rail, runId = '', given = ''] = match;
  const expected = tag(secret, accountId, text);
  return timingSafeEqual(Buffer.from(given), Buffer.from(expected))
    ? { rail: rail as PaymentMethodType, runId }
    : undefined;
}

const tag = (secret: string, accountId: number, text: string): string =>
  createHmac('sha256', secret)
    .update(`purchase.${accountId}.${text}`)
    .digest('base64url')
    .slice(0, TAG_LENGTH);
