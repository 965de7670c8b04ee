/**
 * The demo's tokens are in the documentation, so they open nothing to a call that comes from elsewhere: through a proxy
 * or a tunnel (`X-Forwarded-For`), or for a host that is not this machine (a name that a web page made lead here).
 */
import { DEMO_SECRETS } from '@sluice/database/demo/seed-demo';
import type { IncomingHttpHeaders } from 'node:http';
import type { Problem } from '../http/problem.ts';

const LOOPBACK = /^(?:localhost|127\.\d+\.\d+\.\d+|\[::1\])$/;
const BEARER = /^bearer +(\S+) *$/i;
const secrets: ReadonlySet<string> = new Set(DEMO_SECRETS);

/**
 * Why a call with the demo's token is refused; `undefined` if it is not, or has another token.
 *
 * @param demoHosts - names, in lower case and without ports, that are let in however the call came (`DEMO_HOSTS`).
 */
export function refuseDemo(
  headers: IncomingHttpHeaders,
  demoHosts: readonly string[],
  token = BEARER.exec(headers.authorization ?? '')?.[1],
): Problem | undefined {
  if (token === undefined || !secrets.has(token)) return undefined;
  const name = (headers.host ?? '').toLowerCase().replace(/:\d*$/, '');
  if (demoHosts.includes(name)) return undefined;
  if (headers['x-forwarded-for'] === undefined && LOOPBACK.test(name)) return undefined;
  return {
    code: 'forbidden',
    message:
      'the tokens of the demo open nothing to calls through a proxy or for another host than this machine; DEMO_HOSTS names hosts for which they do',
  };
}
