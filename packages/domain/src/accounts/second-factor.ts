/** The user of an encrypted second factor. It is encrypted into the text, so that it opens for no other user. */
export const secondFactorContext = (accountId: number, userId: number): string =>
  `user ${userId} of account ${accountId}`;
