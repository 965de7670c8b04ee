/**
 * The one line at a start about an unreachable Redis. Also for a Redis that refuses the values of REDIS_URL. The
 * process goes on and tries again: intake keeps calls on its disk, workers begin once Redis is there. The errors of the
 * connections name neither the setting nor its correction.
 */
import { parseRedisUrl, type RedisAddress } from '../settings/redis-url.ts';
import { connectProducer } from './redis.ts';

/** With the time to load a service, the line comes within five seconds. */
const ANSWER_MS_MAX = 3_000;

/** Failures that waiting does not correct: the answer or the error, and the correction. The first match counts. */
const CORRECTIONS: readonly (readonly [pattern: RegExp, correction: string])[] = [
  [
    /^no Sentinel .*\bNOAUTH\b/,
    'the Sentinels want a password, and REDIS_URL has no sentinel_password',
  ],
  [/^no Sentinel .*\bWRONGPASS\b/, 'the Sentinels refuse sentinel_username or sentinel_password'],
  [/\bNOAUTH\b/, 'Redis wants a password, and REDIS_URL has no password'],
  [/\bWRONGPASS\b/, 'the user or the password is wrong'],
  [/\bNOPERM\b/, 'the user has too few permissions'],
  [/\bDB index is out of range\b/, 'Redis has no database of this number'],
  [/\bcluster support disabled\b/, 'this Redis is no Cluster; for one server write redis://'],
  [/\bRESP type\b|\bProtocol error\b/, 'the server there is not Redis'],
  [
    /certificate|altnames/i,
    'the certificate is not trusted; NODE_EXTRA_CA_CERTS names the file of its authority',
  ],
  [/\bwrong version number\b|\bEPROTO\b/, 'the server there has no TLS; redis:// is without TLS'],
];

/**
 * Asks once, and is done then.
 *
 * @param url - `REDIS_URL`.
 * @param onAway - called if Redis has not answered in three seconds or refuses; one line, without the password.
 */
export async function reportRedisAway(
  url: string,
  onAway: (message: string) => void,
): Promise<void> {
  let reason = `no answer in ${ANSWER_MS_MAX / 1_000} s`;
  const redis = await connectProducer(url, ANSWER_MS_MAX, (error) => (reason = rootOf(error)));
  try {
    if (redis.status === 'ready') await redis.ping();
    else onAway(describe(url, reason));
  } catch (error) {
    onAway(describe(url, rootOf(error as Error)));
  } finally {
    redis.disconnect();
  }
}

/** Error of a node or a Sentinel; the client's own error only reports that all of them failed. */
function rootOf(error: Error & { readonly lastNodeError?: Error }): string {
  return (error.lastNodeError ?? error).message
    .replace(/^All sentinels are unreachable\..*Last error: /, 'no Sentinel answers: ')
    .replace(/\b(NOAUTH|WRONGPASS|NOPERM)\b.*/s, '$1');
}

function describe(url: string, reason: string): string {
  const address = parseRedisUrl(url);
  const [, correction] = CORRECTIONS.find(([pattern]) => pattern.test(reason)) ?? [];
  if (correction !== undefined)
    return `Redis cannot be used with REDIS_URL (${hostsOf(address)}): ${correction} (${reason}). Correct it, then start again`;
  return `Redis cannot be used with REDIS_URL (${hostsOf(address)}): ${reason}. This process waits for Redis; check that it runs and can be reached from here${adviceOn(url, reason)}`;
}

/** A server without TLS is silent to a client with it, and one with TLS ends the connection of a client without. */
function adviceOn(url: string, reason: string): string {
  if (url.startsWith('rediss') && /\bno answer\b|timed out|timeout/.test(reason))
    return ', and by TLS: redis:// is without';
  if (!url.startsWith('rediss') && reason.includes('ECONNRESET'))
    return ', and without TLS: rediss:// is with it';
  return '';
}

function hostsOf(address: RedisAddress): string {
  return address.kind === 'single'
    ? new URL(address.url).host
    : address.hosts.map(({ host, port }) => `${host}:${port}`).join(', ');
}
