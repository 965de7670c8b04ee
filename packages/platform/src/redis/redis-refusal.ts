/**
 * Reason why Redis cannot be used: the last error of its connection. A command without a connection fails with
 * "stream isn't writeable", both if Redis is away and if it refuses the password, which only the operator can
 * correct.
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
    // A Cluster's client reports that all nodes failed, and keeps the last node's error.
    const { lastNodeError } = error as { lastNodeError?: Error };
    failures.set(redis, lastNodeError ?? error);
  });
  redis.on('ready', () => failures.delete(redis));
}

/**
 * @param error - of a command.
 * @returns AppError BROKER_LOGIN_REFUSED, or the error of the connection, or else the command's error.
 */
export function refusalOf(redis: RedisClient, error: unknown): unknown {
  const failure = redis.status === 'ready' ? undefined : failures.get(redis);
  const [, answer] = LOGIN_REFUSED.exec(failure?.message ?? String(error)) ?? [];
  if (answer === undefined) return failure ?? error;
  const message = `Redis refuses the user or password of REDIS_URL (${answer}); correct REDIS_URL or the user in Redis`;
  return new AppError('BROKER_LOGIN_REFUSED', message, { cause: failure ?? error });
}
