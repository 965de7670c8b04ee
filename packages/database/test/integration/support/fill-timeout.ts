/** Time for the tables of a test of plans: filling them takes seconds, and on a busy machine a minute. */
export const FILL_TIMEOUT_MS = 240_000;
