/**
 * Detects dead connections to Postgres that wait long, as for a notification. After 30 s of silence the system probes,
 * and it ends the connection when ten probes, a second apart, stay unanswered. By default it would first probe after
 * two hours.
 */
export const KEEP_ALIVE = { keepAlive: true, keepAliveInitialDelayMillis: 30_000 } as const;
