/** Refuses the demo's tokens for calls from elsewhere (`domain/src/accounts/demo-calls.ts`). */
import { DEMO_SECRETS } from '@sluice/database/demo/seed-demo';
import {
  DEMO_ELSEWHERE_MESSAGE,
  FORWARDING_HEADERS,
  mayUseDemo,
} from '@sluice/domain/accounts/demo-calls';
import type { IncomingHttpHeaders } from 'node:http';
import type { Problem } from '../http/problem.ts';

const BEARER = /^bearer +(\S+) *$/i;
const secrets: ReadonlySet<string> = new Set(DEMO_SECRETS);

/** Whether the call may use the demo, by the host and the proxies that it came through. */
export function isForDemo(headers: IncomingHttpHeaders, demoHosts: readonly string[]): boolean {
  const isForwarded = FORWARDING_HEADERS.some((name) => headers[name] !== undefined);
  return mayUseDemo(headers.host ?? '', isForwarded, demoHosts);
}

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
  if (isForDemo(headers, demoHosts)) return undefined;
  return { code: 'forbidden', message: DEMO_ELSEWHERE_MESSAGE };
}
