/** Users who sign in to the console like a browser. */
import type { Role } from '@sluice/domain/accounts/account';
import type { InjectOptions } from 'fastify';
import { sql } from 'kysely';
import { expect } from 'vitest';
import type { Tenant } from './inserted-rows.ts';
import { startSignups } from './signup-world.ts';

/** Address of `inject`, as a browser names it. */
export const ORIGIN = 'http://localhost:80';

const OF_THE_PAGE = { origin: ORIGIN, 'sec-fetch-site': 'same-origin' } as const;

export type ConsoleWorld = Awaited<ReturnType<typeof startConsole>>;

export async function startConsole(changes: Parameters<typeof startSignups>[0] = {}) {
  const world = await startSignups(changes);
  const { api } = world;
  /** A call of the page; `cookie` and `workspace` are a session's. */
  const call = (
    method: 'GET' | 'POST' | 'PUT' | 'DELETE',
    url: string,
    {
      cookie,
      workspace,
      body,
      headers,
      ip = world.newIp(),
    }: {
      readonly cookie?: string;
      readonly workspace?: number;
      readonly body?: unknown;
      readonly headers?: InjectOptions['headers'];
      readonly ip?: string;
    } = {},
  ) =>
    api.app.inject({
      method,
      url,
      remoteAddress: ip,
      headers: withoutAbsent({
        ...OF_THE_PAGE,
        ...(cookie !== undefined && { cookie }),
        ...(workspace !== undefined && { 'x-sluice-workspace': String(workspace) }),
        ...(body !== undefined && { 'content-type': 'application/json' }),
        ...headers,
      }),
      ...(body !== undefined && { payload: JSON.stringify(body) }),
    });
  /** Cookies of the browser that signs in with an address: a code is bound to them. */
  const browsers = new Map<string, Map<string, string>>();
  const browserOf = (email: string, name = ''): Map<string, string> => {
    const key = `${email} ${name}`;
    const cookies = browsers.get(key) ?? new Map<string, string>();
    browsers.set(key, cookies);
    return cookies;
  };
  const headerOf = (cookies: ReadonlyMap<string, string>, session?: string): string =>
    [...[...cookies].map((pair) => pair.join('=')), ...(session ? [session] : [])].join('; ');
  /** Keeps the cookies of the answer, but not a session. */
  const keepCookies = (cookies: Map<string, string>, answer: CookieAnswer): void => {
    for (const [name, text] of cookiesOf(answer))
      if (/-(code|known)/.test(name)) cookies.set(name, text);
  };
  const startCode = async (email: string, browser?: string, ip?: string) => {
    const cookies = browserOf(email, browser);
    const answer = await call('POST', '/console/session/code', {
      body: { email },
      cookie: headerOf(cookies),
      ...(ip !== undefined && { ip }),
    });
    keepCookies(cookies, answer);
    return answer;
  };
  /** @param browser - of several that give the address. */
  const mailedCode = async (email: string, browser?: string, ip?: string): Promise<string> => {
    expect((await startCode(email, browser, ip)).statusCode).toBe(200);
    await world.relay();
    const mail = world.mails.findLast(
      ({ to, text }) => to === email && text.includes('code to sign in'),
    );
    return /code to sign in is (\d{6})\b/.exec(mail?.text ?? '')?.[1] ?? 'no code';
  };
  /** @param session - the cookie of an earlier session. */
  const giveCode = (email: string, code: string, session?: string, browser?: string) =>
    signInBy({ email, code }, session, browser);
  const signInBy = async (body: SignInBody, session?: string, browser?: string) => {
    const cookies = browserOf(body.email, browser);
    const cookie = headerOf(cookies, session);
    const answer = await call('POST', '/console/session', { body, cookie });
    keepCookies(cookies, answer);
    return answer;
  };

  return {
    ...world,
    call,
    startCode,
    mailedCode,
    /** The choice among several invitations. */
    chooseAccount: (email: string, code: string, accountId: number) =>
      signInBy({ email, code, account_id: accountId }),
    codeCookie: (email: string) => headerOf(browserOf(email)),
    giveCode,
    /** A new user of the account with its workspace. */
    async insertUser(
      tenant: Tenant,
      role: Role,
      email = world.newAddress(),
    ): Promise<{ email: string; userId: number }> {
      const { rows } = await sql<{ userId: number }>`
        with made as (
          insert into users (account_id, email, first_name, last_name, role, status)
          values (${tenant.accountId}, ${email}, 'Ada', 'Lovelace', ${role}, 'active') returning user_id
        ), joined as (
          insert into memberships (account_id, user_id, environment_id)
          select ${tenant.accountId}, user_id, ${tenant.environmentId} from made)
        select user_id as "userId" from made`.execute(api.database);
      return { email, userId: rows[0]!.userId };
    },
    /** @returns the cookie, as a browser sends it. */
    async signIn(email: string): Promise<string> {
      const answer = await giveCode(email, await mailedCode(email));
      expect(answer.statusCode).toBe(204);
      return cookieOf(answer);
    },
  };
}

/** `inject` sends a header that is undefined as the word. */
const withoutAbsent = (headers: Record<string, unknown>): NonNullable<InjectOptions['headers']> =>
  Object.fromEntries(
    Object.entries(headers).filter(([, value]) => value !== undefined),
  ) as NonNullable<InjectOptions['headers']>;

interface SignInBody {
  readonly email: string;
  readonly code: string;
  readonly account_id?: number;
}

interface CookieAnswer {
  readonly headers: Record<string, unknown>;
}

const cookiesOf = ({ headers }: CookieAnswer): [string, string][] =>
  [(headers['set-cookie'] ?? []) as string | string[]].flat().map((each) => {
    const [name = '', text = ''] = each.split(';', 1)[0]?.split(/=(.*)/s) ?? [];
    return [name, text];
  });

/** The cookie of the session, or of the portal. */
export function cookieOf(answer: CookieAnswer): string {
  const found = cookiesOf(answer).find(([name]) => !/-(code|known)/.test(name));
  return found?.join('=') ?? '';
}
