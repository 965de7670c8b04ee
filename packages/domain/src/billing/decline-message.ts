/**
 * Messages about declined payments that a customer may read. Payment providers forbid the texts for lost, stolen or
 * suspicious cards, so only the codes listed here have a text of their own.
 */

const GENERIC = 'The card was declined. Use another payment method, or ask the card issuer.';

const MESSAGES: Readonly<Record<string, string>> = {
  insufficient_funds: 'The card has insufficient funds. Use another card.',
  expired_card: 'The card has expired. Use another card.',
  incorrect_cvc: "The card's security code is incorrect. Enter it again.",
  processing_error: 'The card could not be processed. Try again later.',
  authentication_required:
    'The card issuer asks for the cardholder to confirm the payment. Use another payment method.',
  card_velocity_exceeded: "The card's limit of payments is reached. Use another card.",
};

/** @param declineCode - the payment provider's own word; never shown. */
export const declineMessage = (declineCode: string | null): string =>
  declineCode !== null && Object.hasOwn(MESSAGES, declineCode)
    ? (MESSAGES[declineCode] as string)
    : GENERIC;

/** For endings in which no card was refused. */
export const FAILURE_MESSAGES = {
  expired: 'The purchase was not paid in time. Buy again.',
  noSubscription: 'The account has no subscription to add to. Buy a plan first.',
  setAside:
    'The purchase could not be completed. Ask the operator whether you were charged, then buy again.',
} as const;

/**
 * Reasons for which we refuse a checkout, or add-ons, ourselves. A purchase workflow keeps them in place of the payment
 * provider's code.
 */
const CHECKOUT_REFUSALS = {
  amount_changed:
    'The amount is not the one that was shown; the account was not charged. Buy again at the new amount.',
  unknown_subscription_item:
    "The account's subscription has an item that is not sold here, and would be charged beside this plan; the account was not charged. Ask the operator.",
  addons_of_other_cycle:
    "The account's add-ons are billed on another cycle than this plan; the account was not charged. Choose a plan of their cycle.",
  unknown_addon_held:
    'The account has an add-on at a price that is not sold here any more, so it may be this add-on; the account was not charged. Ask the operator.',
  // The payment provider's own word.
  coupon_expired:
    'The coupon is used up or has expired; the account was not charged. Buy without it, or with another one.',
  payment_past_due:
    "The subscription's last invoice is not paid: pay the open invoice first, with another card on file. The account was not charged.",
  payment_pending:
    "The payment of the subscription's last invoice is still under way. Try again when it is paid; the account was not charged.",
} as const;

export type CheckoutRefusal = keyof typeof CHECKOUT_REFUSALS;

export const isCheckoutRefusal = (code: string | undefined): code is CheckoutRefusal =>
  code !== undefined && Object.hasOwn(CHECKOUT_REFUSALS, code);

/** @param code - ours, or the payment provider's, whose refusals may be due to the payment method. */
export const refusalMessage = (code: string | undefined): string =>
  isCheckoutRefusal(code)
    ? CHECKOUT_REFUSALS[code]
    : 'The payment could not be made. Check the payment method on file.';
