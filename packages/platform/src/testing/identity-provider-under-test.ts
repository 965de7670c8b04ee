/**
 * A real OpenID provider for tests, on a free local port: discovery, authorization code with PKCE, tokens signed with
 * RS256, keys, userinfo. It refuses as a provider must, and gives false answers if a test asks for them.
 */
import { createHash, generateKeyPairSync, type KeyObject, randomBytes, sign } from 'node:crypto';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';

const KEY_ID = 'key-1';
const TOKEN_LIFETIME_SECONDS = 300;

interface ProviderUnderTestOptions {
  /** By which tokens are issued; this machine's clock, if absent. */
  readonly now?: () => number;
  /** Of its address; another name than the console's is another site to a browser. */
  readonly host?: '127.0.0.1' | 'localhost';
  readonly clientId?: string;
  readonly clientSecret?: string;
}

/** Wrong answers of the provider. All of them may be changed at any time. */
export interface ProviderLies {
  /** Every request is answered so. */
  status?: number | undefined;
  /** In place of the discovery document. */
  metadata?: Readonly<Record<string, unknown>>;
  /** In place of the claims of the ID token. */
  claims?: Readonly<Record<string, unknown>>;
  /** Signs in place of the key that is published. */
  key?: KeyObject;
  /** Of the ID token's head. */
  algorithm?: string;
}

/** Claims of the person who is signed in at the provider. */
export type ProviderPersonUnderTest = Readonly<Record<string, unknown>> & { readonly sub: string };

interface Grant {
  readonly redirectUri: string;
  readonly nonce: string | null;
  readonly challenge: string;
  readonly person: ProviderPersonUnderTest;
}

export type ProviderUnderTest = Awaited<ReturnType<typeof startProviderUnderTest>>;

export async function startProviderUnderTest({
  now = Date.now,
  host = '127.0.0.1',
  clientId = 'sluice',
  clientSecret = 'client secret of the provider under test',
}: ProviderUnderTestOptions = {}) {
  const { privateKey, publicKey } = generateKeyPairSync('rsa', { modulusLength: 2048 });
  const grants = new Map<string, Grant>();
  const accessTokens = new Map<string, ProviderPersonUnderTest>();
  const requests: { readonly path: string; readonly body: string }[] = [];
  const lies: ProviderLies = {};
  const state = {
    person: { sub: 'nobody' } as ProviderPersonUnderTest,
    /** Whether the ID token leaves out all but `sub`, which userinfo then has. */
    isThin: false,
  };

  const server = createServer((request, response) => {
    void answer(request, response).catch(() => response.destroy());
  });
  await new Promise<void>((resolve) => void server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as { port: number };
  const issuer = `http://${host}:${port}`;

  async function answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const url = new URL(request.url ?? '/', issuer);
    const chunks: Buffer[] = [];
    for await (const chunk of request as AsyncIterable<Buffer>) chunks.push(chunk);
    const body = Buffer.concat(chunks).toString();
    requests.push({ path: url.pathname, body });
    const send = (status: number, document: unknown): void => {
      response.writeHead(status, { 'content-type': 'application/json' });
      response.end(JSON.stringify(document));
    };
    if (lies.status !== undefined) return send(lies.status, { error: 'server_error' });
    switch (url.pathname) {
      case '/.well-known/openid-configuration':
        return send(200, {
          issuer,
          authorization_endpoint: `${issuer}/authorize`,
          token_endpoint: `${issuer}/token`,
          jwks_uri: `${issuer}/keys`,
          userinfo_endpoint: `${issuer}/userinfo`,
          response_types_supported: ['code'],
          subject_types_supported: ['public'],
          id_token_signing_alg_values_supported: ['RS256'],
          authorization_response_iss_parameter_supported: true,
          ...lies.metadata,
        });
      case '/keys':
        return send(200, {
          keys: [{ ...publicKey.export({ format: 'jwk' }), kid: KEY_ID, use: 'sig', alg: 'RS256' }],
        });
      case '/authorize': {
        const back = authorize(url.searchParams);
        response.writeHead(302, { location: back });
        response.end();
        return;
      }
      case '/token': {
        const tokens = exchange(request, new URLSearchParams(body));
        return typeof tokens === 'string' ? send(400, { error: tokens }) : send(200, tokens);
      }
      case '/userinfo': {
        const token = /^Bearer (.+)$/.exec(request.headers.authorization ?? '')?.[1] ?? '';
        const person = accessTokens.get(token);
        return person ? send(200, person) : send(401, { error: 'invalid_token' });
      }
      default:
        return send(404, {});
    }
  }

  /** @returns the address that the browser returns to. @throws Error on a request that no browser should bring. */
  function authorize(query: URLSearchParams): string {
    const redirectUri = query.get('redirect_uri') ?? '';
    if (query.get('client_id') !== clientId || query.get('code_challenge_method') !== 'S256')
      throw new Error('the request is not as it must be');
    const code = randomBytes(16).toString('hex');
    grants.set(code, {
      redirectUri,
      nonce: query.get('nonce'),
      challenge: query.get('code_challenge') ?? '',
      person: state.person,
    });
    const back = new URL(redirectUri);
    back.searchParams.set('code', code);
    back.searchParams.set('state', query.get('state') ?? '');
    back.searchParams.set('iss', issuer);
    return back.href;
  }

  function exchange(request: IncomingMessage, form: URLSearchParams): object | string {
    const [, basic = ''] = /^Basic (.+)$/.exec(request.headers.authorization ?? '') ?? [];
    const [user = '', password = ''] = Buffer.from(basic, 'base64').toString().split(':');
    const given =
      basic === '' ? [form.get('client_id'), form.get('client_secret')] : [user, password];
    const known = given.map((each) => decodeURIComponent((each ?? '').replaceAll('+', ' ')));
    if (known[0] !== clientId || known[1] !== clientSecret) return 'invalid_client';
    const code = form.get('code') ?? '';
    const grant = grants.get(code);
    grants.delete(code);
    const challenge = createHash('sha256')
      .update(form.get('code_verifier') ?? '')
      .digest('base64url');
    if (grant?.challenge !== challenge || grant.redirectUri !== form.get('redirect_uri'))
      return 'invalid_grant';
    const accessToken = randomBytes(16).toString('hex');
    accessTokens.set(accessToken, grant.person);
    const seconds = Math.floor(now() / 1000);
    const claims = {
      ...(state.isThin ? { sub: grant.person.sub } : grant.person),
      iss: issuer,
      aud: clientId,
      iat: seconds,
      exp: seconds + TOKEN_LIFETIME_SECONDS,
      nonce: grant.nonce,
      ...lies.claims,
    };
    return {
      access_token: accessToken,
      token_type: 'Bearer',
      expires_in: TOKEN_LIFETIME_SECONDS,
      id_token: signed(claims),
    };
  }

  function signed(claims: object): string {
    const part = (content: object): string =>
      Buffer.from(JSON.stringify(content)).toString('base64url');
    const head = { alg: lies.algorithm ?? 'RS256', kid: KEY_ID, typ: 'JWT' };
    const text = `${part(head)}.${part(claims)}`;
    if (lies.algorithm === 'none') return `${text}.`;
    const signature = sign('sha256', Buffer.from(text), lies.key ?? privateKey);
    return `${text}.${signature.toString('base64url')}`;
  }

  return {
    issuer,
    clientId,
    clientSecret,
    lies,
    state,
    /** Received requests, with their forms. */
    requests,
    /**
     * Signs the person in at the address that a sign-in begins with. @returns the address that the browser returns
     * to.
     */
    async authorize(address: string, person: ProviderPersonUnderTest): Promise<URL> {
      state.person = person;
      const back = await fetch(address, { redirect: 'manual' });
      const location = back.headers.get('location');
      if (location === null) throw new Error(`the provider answered ${back.status}`);
      return new URL(location);
    },
    async close(): Promise<void> {
      server.closeAllConnections();
      await new Promise<void>((resolve) => void server.close(() => resolve()));
    },
  };
}
