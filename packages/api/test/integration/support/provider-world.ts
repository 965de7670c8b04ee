/** A console under test whose accounts have identity providers, which run. */
import { startProviderUnderTest } from '@sluice/platform/testing/identity-provider-under-test';
import { expect } from 'vitest';
import { domainRecordText } from '../../../src/identity/domain-records.ts';
import { SECRET } from './api-under-test.ts';
import { type Tenant } from './inserted-rows.ts';
import { startConsole } from './console-world.ts';

export type ProviderWorld = Awaited<ReturnType<typeof startProviderWorld>>;
type Provider = Awaited<ReturnType<typeof startProviderUnderTest>>;
type Person = Parameters<Provider['authorize']>[1];
type Changes = Parameters<typeof startConsole>[0];

export async function startProviderWorld(changes: Changes = {}) {
  const records = new Map<string, readonly string[]>();
  const world = await startConsole({
    readTextRecords: async (name) => records.get(name) ?? [],
    ...changes,
  });
  const { api, call } = world;
  const providers: Provider[] = [];
  let count = 0;

  /** Sets the TXT record of the domain. */
  const prove = (tenant: Tenant, domain: string): void =>
    void records.set(`_sluice.${domain}`, [domainRecordText(SECRET, tenant.accountId)]);
  const put = (tenant: Tenant, body: object) =>
    api.call('PUT', `/v1/accounts/${tenant.accountId}/identity_provider`, {
      key: tenant.token,
      body,
    });
  const settingsOf = (provider: Provider, domain: string) => ({
    issuer: provider.issuer,
    client_id: provider.clientId,
    client_secret: provider.clientSecret,
    email_domains: [domain],
  });
  /** @param path - the screen that was asked for. */
  const begin = async (email: string, path?: string) => {
    const answer = await call('POST', '/console/session/provider/begin', {
      body: { email, ...(path !== undefined && { return_path: path }) },
    });
    expect({ status: answer.statusCode, body: answer.body }).toMatchObject({ status: 200 });
    return { url: answer.json().url as string, cookie: cookieNamed(answer, 'sluice-sign-in-80') };
  };
  /** Hands in the values that the browser came back with, as the page does. */
  const finish = (back: URL, cookie: string | undefined, changed: object = {}) => {
    const { code, state, iss } = Object.fromEntries(back.searchParams);
    return call('POST', '/console/session/provider/finish', {
      ...(cookie !== undefined && { cookie }),
      body: {
        account_id: Number(/^\/sign-in\/(\d+)$/.exec(back.pathname)?.[1]),
        code,
        state,
        ...(iss !== undefined && { iss }),
        ...changed,
      },
    });
  };

  return {
    ...world,
    records,
    prove,
    put,
    begin,
    finish,
    settingsOf,
    startProvider: async (): Promise<Provider> => {
      const provider = await startProviderUnderTest({ now: () => api.clock.nowMs });
      providers.push(provider);
      return provider;
    },
    /** A new account's provider, with a domain of its own. */
    async connected(tenant: Tenant, settings: object = {}) {
      const provider = await startProviderUnderTest({ now: () => api.clock.nowMs });
      providers.push(provider);
      const domain = `acme${++count}.example`;
      prove(tenant, domain);
      const answer = await put(tenant, { ...settingsOf(provider, domain), ...settings });
      expect({ status: answer.statusCode, body: answer.body }).toMatchObject({ status: 200 });
      return { provider, domain };
    },
    /** From the email to the session, or to its refusal. */
    async signInBy(provider: Provider, email: string, person: Partial<Person> = {}) {
      const begun = await begin(email);
      const back = await provider.authorize(begun.url, {
        sub: `sub of ${email}`,
        email,
        email_verified: true,
        ...person,
      });
      return finish(back, begun.cookie);
    },
    async close(): Promise<void> {
      await world.close();
      await Promise.all(providers.map((each) => each.close()));
    },
  };
}

/** The cookie of the name that an answer sets, as a browser sends it back; undefined if it is set to an empty text. */
function cookieNamed(
  { headers }: { readonly headers: Record<string, unknown> },
  name: string,
): string | undefined {
  const set = [headers['set-cookie'] ?? []].flat().map(String);
  const found = set.find((each) => each.startsWith(`${name}=`))?.split(';')[0];
  return found === `${name}=` ? undefined : found;
}

/** Of the session. */
export const sessionOf = (answer: { readonly headers: Record<string, unknown> }): string =>
  cookieNamed(answer, 'sluice-80') ?? 'no session';
