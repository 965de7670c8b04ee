/**
 * The payment provider's published test cards and bank accounts: the name by which each is used, and how it behaves
 * (`account-conventions.md` §7.5).
 */

export interface TestCard {
  readonly brand: string;
  readonly last4: string;
  /** Why a charge fails; null if it succeeds. */
  readonly decline: { readonly code: string; readonly declineCode: string | null } | null;
  /** False if the payment provider refuses to save it at all. */
  readonly canAttach: boolean;
  /** A charge without the cardholder present fails; one that they confirm succeeds. */
  readonly needsCardholder?: true;
  /** A bank debit: the charge is pending for days, and then succeeds or fails. */
  readonly settlesLate?: true;
}

const visa = (last4: string, decline: TestCard['decline'] = null, canAttach = true): TestCard => ({
  brand: 'visa',
  last4,
  decline,
  canAttach,
});
const declined = (last4: string, declineCode: string): TestCard =>
  visa(last4, { code: 'card_declined', declineCode });

export const TEST_CARDS: Readonly<Record<string, TestCard>> = {
  pm_card_visa: visa('4242'),
  pm_card_mastercard: { ...visa('4444'), brand: 'mastercard' },
  pm_card_visa_chargeDeclined: { ...declined('0002', 'generic_decline'), canAttach: false },
  pm_card_visa_chargeDeclinedInsufficientFunds: {
    ...declined('9995', 'insufficient_funds'),
    canAttach: false,
  },
  pm_card_visa_chargeDeclinedLostCard: { ...declined('9987', 'lost_card'), canAttach: false },
  pm_card_visa_chargeDeclinedStolenCard: { ...declined('9979', 'stolen_card'), canAttach: false },
  pm_card_chargeDeclinedExpiredCard: visa(
    '0069',
    { code: 'expired_card', declineCode: null },
    false,
  ),
  pm_card_chargeDeclinedIncorrectCvc: visa(
    '0127',
    { code: 'incorrect_cvc', declineCode: null },
    false,
  ),
  pm_card_chargeDeclinedProcessingError: visa(
    '0119',
    { code: 'processing_error', declineCode: null },
    false,
  ),
  pm_card_visa_chargeDeclinedVelocityLimitExceeded: {
    ...declined('6975', 'card_velocity_exceeded'),
    canAttach: false,
  },
  pm_card_chargeCustomerFail: declined('0341', 'generic_decline'),
  pm_card_authenticationRequired: {
    ...visa('3184', { code: 'authentication_required', declineCode: 'authentication_required' }),
    needsCardholder: true,
  },
  pm_card_authenticationRequiredChargeDeclinedInsufficientFunds: declined(
    '3178',
    'insufficient_funds',
  ),
  pm_usBankAccount_success: { ...visa('6789'), brand: 'bank', settlesLate: true },
  pm_usBankAccount_insufficientFunds: {
    ...visa('2227', { code: 'insufficient_funds', declineCode: null }),
    brand: 'bank',
    settlesLate: true,
  },
};
