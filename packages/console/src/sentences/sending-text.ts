/** Options of a webhook's requests, between configuration and form. Pure. */

/** The part of `GET /v1/reporting_webhooks/{id}` about its requests. */
export interface Sending {
  readonly signing: 'sluice' | 'standard_webhooks' | 'none';
  /** With `sluice`: signed by both. */
  readonly standard_webhooks: boolean;
  /** Days of failure, 1 to 30. Null: never. */
  readonly disable_after_days: number | null;
  /** Null: as fast as it goes. */
  readonly rate_limit_per_second: number | null;
  /** Requests at the same time. Null: as many as the installation allows. */
  readonly window_max: number | null;
  readonly ordering: 'person' | 'strict';
}

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
export const signingOf = (signature: string) =>
  signature === 'both'
    ? { signing: 'sluice', standard_webhooks: true }
    : { signing: signature, standard_webhooks: false };

/** Of a field for a number: null if it is empty. A text that is no number stays, for the API to refuse. */
export function numberOrNull(text: string): number | string | null {
  if (text === '') return null;
  return /^\d{1,9}$/.test(text) ? Number(text) : text;
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
