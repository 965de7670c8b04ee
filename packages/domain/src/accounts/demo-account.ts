/** Numbers of the demo's accounts, and the addresses of their owners. */

export const DEMO_ACCOUNT_IDS = [1, 2, 3] as const;

/** An account with one of the numbers is the demo's if its first user has this address. */
export const demoOwnerEmail = (accountId: number): string => `owner${accountId}@demo.example`;
