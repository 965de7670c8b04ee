/** Calls of a program and of a user for the program's login. */
import { sql } from 'kysely';
import { expect } from 'vitest';
import { insertTenant } from '../../support/inserted-rows.ts';
import type { ConsoleWorld } from '../../support/console-world.ts';

export interface Login {
  readonly device_code: string;
  readonly user_code: string;
  readonly verification_uri: string;
  readonly expires_in: number;
  readonly interval: number;
}

export const errorOf = (answer: { json(): { error?: string } }): string | undefined =>
  answer.json().error;

export const codeOf = ({ device_code }: Login) => ({ device_code });

let count = 0;

/** A user of a new tenant at the console, and a program that asks to be let in. */
export async function createDeviceLogins(world: ConsoleWorld) {
  const newTenant = () => insertTenant(world.api.database, `lets_in_${++count}`);
  const tenant = await newTenant();
  const admin = await world.insertUser(tenant, 'account_admin');
  const cookie = await world.signIn(admin.email);

  /** As the program calls, which is no browser. */
  const callAsProgram = (path: string, body: object, ip = world.newIp()) =>
    world.api.app.inject({
      method: 'POST',
      url: `/v1/device_logins${path}`,
      remoteAddress: ip,
      headers: { 'content-type': 'application/json', host: 'localhost:80' },
      payload: JSON.stringify(body),
    });
  const start = async (ip?: string): Promise<Login> => {
    const answer = await callAsProgram('', { client_name: 'ada-laptop' }, ip);
    expect(answer.statusCode).toBe(200);
    return answer.json();
  };
  /** As `interval` seconds after the question before. */
  async function ask({ device_code }: Pick<Login, 'device_code'>) {
    await sql`update device_logins set polled_at = polled_at - interval '1 hour'`.execute(
      world.api.database,
    );
    return callAsProgram('/token', { device_code });
  }
  const look = (code: string, session = cookie, ip?: string) =>
    world.call('POST', '/console/device', { cookie: session, body: { code }, ...(ip && { ip }) });
  const decide = (
    code: string,
    {
      approve = true,
      session = cookie,
      environment = tenant.environmentId,
    }: { approve?: boolean; session?: string; environment?: number | null } = {},
  ) =>
    world.call('POST', '/console/device/decision', {
      cookie: session,
      body: { code, approve, environment_id: environment },
    });
  async function letIn(
    session = cookie,
    environment: number | null = tenant.environmentId,
  ): Promise<{ token: string; key: string | null; read_only_key: boolean; role: string }> {
    const login = await start();
    expect((await decide(login.user_code, { session, environment })).statusCode).toBe(204);
    const answer = await ask(login);
    expect(answer.statusCode).toBe(200);
    return answer.json();
  }
  const accountStatus = async (token: string): Promise<number> => {
    // A token is remembered for a second.
    world.api.clock.nowMs += 2_000;
    const path = `/v1/accounts/${tenant.accountId}`;
    return (await world.api.call('GET', path, { key: token })).statusCode;
  };

  return {
    newTenant,
    tenant,
    admin,
    cookie,
    callAsProgram,
    start,
    ask,
    look,
    decide,
    letIn,
    accountStatus,
  };
}

export type DeviceLogins = Awaited<ReturnType<typeof createDeviceLogins>>;
