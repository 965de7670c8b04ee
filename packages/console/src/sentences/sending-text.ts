/** Options of a webhook's requests, between configuration and form. Pure. */
import type { Described } from '../client/operations.ts';

/** The part of `GET /v1/reporting_webhooks/{id}` about its requests. */
export type Sending = Pick<
  Described<'ReportingWebhook'>,
  | 'signing'
  | 'standard_webhooks'
  | 'disable_after_days'
  | 'rate_limit_per_second'
  | 'window_max'
  | 'ordering'
>;

/** The choices of the form, which are two fields of the API. */
export const SIGNATURES = {
  sluice: 'x-svc-signature',
  both: 'x-svc-signature, and Standard Webhooks beside it',
  standard_webhooks: 'Standard Webhooks alone',
  none: 'not signed',
} as const;

export type Signature = keyof typeof SIGNATURES;

export const signatureOf = ({
  signing,
  standard_webhooks: isBoth,
}: Pick<Sending, 'signing' | 'standard_webhooks'>): Signature =>
  signing === 'sluice' && isBoth ? 'both' : signing;

/** Of a choice as {@link signatureOf} gives it. */
export const signingOf = (signature: Signature): Pick<Sending, 'signing' | 'standard_webhooks'> =>
  signature === 'both'
    ? { signing: 'sluice', standard_webhooks: true }
    : { signing: signature, standard_webhooks: false };

/** Of a field for a number: null if it is empty. A text that is no number stays, for the API to refuse. */
export function numberOrNull(text: string): number | null {
  if (text === '') return null;
  return /^\d{1,9}$/.test(text) ? Number(text) : (text as unknown as number);
}

/** In a few words, for a line under the webhook's name: the signature, and all settings that are not the default. */
export function sendingText(sending: Sending): string {
  const { disable_after_days: days, rate_limit_per_second: rate, window_max: window } = sending;
  return [
    `signature: ${SIGNATURES[signatureOf(sending)]}`,
    rate !== null && `at most ${rate} a second`,
    window !== null && `at most ${window} at the same time`,
    sending.ordering === 'strict' && 'in strict order',
    days !== null && `disabled after ${days} ${days === 1 ? 'day' : 'days'} of failure`,
  ]
    .filter((part) => part !== false)
    .join('; ');
}
