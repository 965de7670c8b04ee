/**
 * Connections to Postgres that wait for long, as for a notification, learn that the other end is gone: after 30 s
 * in which nothing came the system asks for a sign of life, and it ends the connection where ten questions, a
 * second apart, stay without one. The system's own first question comes after two hours.
 */
export const KEEP_ALIVE = { keepAlive: true, keepAliveInitialDelayMillis: 30_000 } as const;
