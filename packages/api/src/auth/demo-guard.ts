/** Refuses the demo's tokens for calls from elsewhere (`domain/src/accounts/demo-calls.ts`). */
import { DEMO_SECRETS } from '@sluice/database/demo/seed-demo';
import { DEMO_ELSEWHERE_MESSAGE, mayUseDemo } from '@sluice/domain/accounts/demo-calls';
import type { IncomingHttpHeaders } from 'node:http';
import type { Problem } from '../http/problem.ts';

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
  const isForwarded = headers['x-forwarded-for'] !== undefined;
  if (mayUseDemo(headers.host ?? '', isForwarded, demoHosts)) return undefined;
  return { code: 'forbidden', message: DEMO_ELSEWHERE_MESSAGE };
}
