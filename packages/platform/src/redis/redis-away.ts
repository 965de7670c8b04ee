/**
 * The one line at a start about a Redis that does not answer. The process goes on and waits for it: intake keeps calls
 * on its disk, workers begin once it is there. What its connections say meanwhile names neither the setting nor that.
 */
import { parseRedisUrl } from '../settings/redis-url.ts';
import { connectProducer } from './redis.ts';

/** With the time to load a service, the line comes within five seconds. */
const ANSWER_MS_MAX = 3_000;

/**
 * Asks once, and is done then.
 *
 * @param url - `REDIS_URL`.
 * @param onAway - told where Redis has not answered in three seconds, without the password.
 */
export async function reportRedisAway(
  url: string,
  onAway: (message: string) => void,
): Promise<void> {
  let reason = `no answer in ${ANSWER_MS_MAX / 1_000} s`;
  const redis = await connectProducer(url, ANSWER_MS_MAX, (error) => (reason = error.message));
  try {
    if (redis.status === 'ready') await redis.ping();
    else onAway(describe(url, reason));
  } catch (error) {
    onAway(describe(url, (error as Error).message));
  } finally {
    redis.disconnect();
  }
}

const describe = (url: string, reason: string): string =>
  `Redis cannot be used as REDIS_URL says (${hostsOf(url)}): ${reason}; it is waited for, look whether it runs and may be reached from here`;

function hostsOf(url: string): string {
  const address = parseRedisUrl(url);
  return address.kind === 'single'
    ? new URL(address.url).host
    : address.hosts.map(({ host, port }) => `${host}:${port}`).join(', ');
}
