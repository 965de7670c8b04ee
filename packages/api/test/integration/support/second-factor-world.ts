/** Users of a console under test who have a second factor. */
import { fromBase32, passwordOfStep, STEP_MS } from '@sluice/platform/secrets/one-time-password';
import { expect } from 'vitest';
import type { Tenant } from './inserted-rows.ts';
import { cookieOf, type ConsoleWorld } from './console-world.ts';

/** @param world - called when it is needed, since it is started before the tests. */
export function secondFactorsOf(world: () => ConsoleWorld) {
  const call = (method: 'GET' | 'POST' | 'DELETE', url: string, cookie: string, body?: unknown) =>
    world().call(method, url, { cookie, ...(body !== undefined && { body }) });
  const codeOf = (secret: string, stepsLater = 0): string =>
    passwordOfStep(fromBase32(secret), Math.floor(world().api.clock.nowMs / STEP_MS) + stepsLater);
  return {
    call,
    codeOf,
    require2fa: (action: 'enable' | 'disable', tenant = world().api.a) =>
      world().api.call('POST', `/v1/accounts/${tenant.accountId}/2fa_required/${action}`, {
        key: tenant.token,
      }),
    /** A new user who has set up a second factor; `cookie` is of the session that did so. */
    enrolled: async (
      role: 'member' | 'account_admin' = 'member',
      tenant: Tenant = world().api.a,
    ) => {
      const user = await world().insertUser(tenant, role);
      const first = await world().signIn(user.email);
      const { secret } = (await call('POST', '/console/second_factor/setup', first)).json();
      const code = codeOf(secret);
      const confirmed = await call('POST', '/console/second_factor', first, { code });
      expect(confirmed.statusCode).toBe(200);
      const codes = confirmed.json().recovery_codes as string[];
      world().api.clock.nowMs += STEP_MS;
      return { ...user, secret: secret as string, codes, first, cookie: cookieOf(confirmed) };
    },
    /** Gives the second factor at the sign-in. */
    give: (cookie: string, body: object) =>
      call('POST', '/console/session/second_factor', cookie, body),
  };
}
