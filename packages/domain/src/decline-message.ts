/**
 * What a customer may read of a declined payment. Vendors ask that a lost, stolen or suspicious card is
 * not named as such to whoever holds it, so only the codes listed here have a text of their own.
 */

const GENERIC = 'The card was declined. Use another payment method, or ask the card issuer.';

const MESSAGES: Readonly<Record<string, string>> = {
  insufficient_funds: 'The card has insufficient funds.',
  expired_card: 'The card has expired.',
  incorrect_cvc: "The card's security code is incorrect.",
  processing_error: 'The card could not be processed just now. Try again in a while.',
  authentication_required:
    'The card issuer asks for the cardholder to confirm the payment. Use another payment method.',
  card_velocity_exceeded: "The card's limit of payments is reached.",
};

/** @param declineCode - the vendor's own word; never shown. */
export const declineMessage = (declineCode: string | null): string =>
  declineCode !== null && Object.hasOwn(MESSAGES, declineCode)
    ? (MESSAGES[declineCode] as string)
    : GENERIC;

/** For endings in which no card was refused. */
export const FAILURE_MESSAGES = {
  refused: 'The payment could not be made. Check the payment method on file.',
  expired: 'The purchase was not paid in time.',
  amountChanged: 'The amount is not the one that was shown; nothing was charged.',
  addonsOfOtherCycle:
    "The account's add-ons are billed on another cycle than this plan; nothing was charged.",
  noSubscription: 'The account has no subscription to add to.',
} as const;
