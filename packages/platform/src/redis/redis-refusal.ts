/**
 * Why Redis cannot be used: what its connection met last. A command that finds no connection fails with "stream isn't
 * writeable", whether Redis is away or knows the password to be wrong, which only the operator can mend.
 *
 * Beside `redis.ts`, which opens the connections.
 */
import { AppError } from '@sluice/domain/values/errors';
import type { RedisClient } from './redis-client.ts';

/** No password at all, and a wrong one or an unknown user. */
const LOGIN_REFUSED = /^(NOAUTH|WRONGPASS)\b/;

/** Of each connection that is not there: the last error of it. */
const failures = new WeakMap<RedisClient, Error>();

/** To be called once for a new client. */
export function rememberFailure(redis: RedisClient): void {
  redis.on('error', (error: Error) => {
    // A Cluster's client tells that all nodes failed, and keeps what the last of them said.
    const { lastNodeError } = error as { lastNodeError?: Error };
    failures.set(redis, lastNodeError ?? error);
  });
  redis.on('ready', () => failures.delete(redis));
}

/**
 * @param error - of a command.
 * @returns AppError BROKER_LOGIN_REFUSED, or the error of the connection, or else that of the command.
 */
export function refusalOf(redis: RedisClient, error: unknown): unknown {
  const failure = redis.status === 'ready' ? undefined : failures.get(redis);
  const [, answer] = LOGIN_REFUSED.exec(failure?.message ?? String(error)) ?? [];
  if (answer === undefined) return failure ?? error;
  const message = `Redis refuses the user or password of REDIS_URL (${answer}); correct REDIS_URL or the user in Redis`;
  return new AppError('BROKER_LOGIN_REFUSED', message, { cause: failure ?? error });
}
