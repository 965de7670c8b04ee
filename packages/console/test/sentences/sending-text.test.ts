/** Sending options of a webhook: in words, and as choices of its form. */
import { expect, test } from 'vitest';
import {
  numberOrNull,
  type Sending,
  sendingText,
  type Signature,
  SIGNATURES,
  signatureOf,
  signingOf,
} from '../../src/sentences/sending-text.ts';

const sending = (changes: Partial<Sending>): Sending => ({
  signing: 'sluice',
  standard_webhooks: false,
  disable_after_days: null,
  rate_limit_per_second: null,
  window_max: null,
  ordering: 'person',
  ...changes,
});

test.each<[Partial<Sending>, string]>([
  [{}, 'signature: x-svc-signature'],
  [{ signing: 'none' }, 'signature: not signed'],
  [
    { rate_limit_per_second: 5, window_max: 2, ordering: 'strict', disable_after_days: 1 },
    'signature: x-svc-signature; at most 5 a second; at most 2 at the same time; in strict order; disabled after 1 day of failure',
  ],
])('%j is "%s"', (changes, text) => {
  expect(sendingText(sending(changes))).toBe(text);
});

test('each choice of a signature is read back from the settings that it sends', () => {
  for (const signature of Object.keys(SIGNATURES))
    expect(signatureOf(signingOf(signature as Signature))).toBe(signature);
});

test('an empty number removes the bound, and a text with other characters than digits goes to the API unchanged', () => {
  expect(['', '12', '0', '1.5', 'x', '-1'].map(numberOrNull)).toEqual([
    null,
    12,
    0,
    '1.5',
    'x',
    '-1',
  ]);
});
