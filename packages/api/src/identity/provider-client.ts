/**
 * Client of identity providers: the address of a sign-in, and the person who came back. OpenID Connect with the
 * authorization code, PKCE, state and nonce, by `openid-client`, which no other file imports a value of.
 *
 * The library checks the state, the answer's `iss`, and of the ID token issuer, audience, nonce and times. It would
 * leave the signature out, since the token comes over TLS; we check it by the provider's keys. A provider's description
 * is read anew at each step: a sign-in is rare, and a new key or address is in force at once.
 */
import { isOfThisMachine } from '@sluice/domain/accounts/demo-calls';
import type { PersonClaims } from '@sluice/domain/accounts/identity-provider';
import { reasonOf } from '@sluice/domain/values/errors';
import {
  allowInsecureRequests,
  AuthorizationResponseError,
  authorizationCodeGrant,
  buildAuthorizationUrl,
  buildEndSessionUrl,
  calculatePKCECodeChallenge,
  ClientSecretBasic,
  ClientSecretPost,
  clockSkew,
  type Configuration,
  customFetch,
  type CustomFetch,
  discovery,
  enableNonRepudiationChecks,
  fetchUserInfo,
  None,
  ResponseBodyError,
} from 'openid-client';
import { ProviderUnreachable } from './provider-fetch.ts';

export interface KnownProvider {
  readonly issuer: string;
  readonly clientId: string;
  readonly clientSecret: string;
}

/** Values that bind a sign-in to its browser. They are never stored. */
export interface SignInSecrets {
  readonly redirectUri: string;
  readonly state: string;
  readonly nonce: string;
  readonly codeVerifier: string;
}

/** @property detail - for the log, without secrets and data of the person. */
export type ProviderFailure =
  /** It cannot be reached, or does not speak OpenID Connect at that address. */
  | { readonly outcome: 'away'; readonly detail: string }
  /** @property error - the code with which the provider refused, such as `invalid_client`. */
  | { readonly outcome: 'refused'; readonly detail: string; readonly error: string | null };

export interface ProviderClaims extends PersonClaims {
  readonly sub: string;
  readonly given_name?: unknown;
  readonly family_name?: unknown;
}

export interface ProviderClient {
  begin(
    provider: Omit<KnownProvider, 'clientSecret'>,
    secrets: SignInSecrets,
    email: string,
  ): Promise<{ readonly outcome: 'begun'; readonly url: string } | ProviderFailure>;
  /** @param answer - as the provider sent the browser back, with `code` and perhaps `iss`. */
  finish(
    provider: KnownProvider,
    secrets: SignInSecrets,
    answer: Readonly<Record<string, string>>,
  ): Promise<
    | {
        readonly outcome: 'verified';
        readonly claims: ProviderClaims;
        /** As it came; the provider knows by it whom it signs out. */
        readonly idToken: string;
      }
    | ProviderFailure
  >;
  /**
   * Address at which the browser ends the session that the person has at the provider (OpenID Connect RP-Initiated
   * Logout).
   *
   * @param idToken - of the session that ends here. Absent: the provider may ask the person.
   * @returns undefined if the provider offers no such address, or does not answer.
   */
  signOutUrl(
    provider: Omit<KnownProvider, 'clientSecret'>,
    idToken: string | undefined,
  ): Promise<string | undefined>;
}

/** Of each request; a sign-in has four at most. */
const TIMEOUT_SECONDS = 5;
const ERROR_CODE = /^[a-z_]{1,40}$/;
/** OpenID Connect Core §2. A longer one would not fit into the index of persons. */
const SUBJECT = /^[\x20-\x7e]{1,255}$/;

/** @param now - milliseconds since 1970, by which tokens expire. */
export function createProviderClient(fetch: CustomFetch, now: () => number): ProviderClient {
  async function configure(
    { issuer, clientId }: Omit<KnownProvider, 'clientSecret'>,
    clientSecret?: string,
  ): Promise<Configuration> {
    const server = new URL(issuer);
    // By HTTP on this machine alone, to try things out: elsewhere the keys would be anybody's.
    const isInsecure = server.protocol === 'http:' && isOfThisMachine(server.host);
    const options = {
      [customFetch]: fetch,
      timeout: TIMEOUT_SECONDS,
      execute: isInsecure ? [allowInsecureRequests] : [],
    };
    const metadata = { [clockSkew]: Math.round((now() - Date.now()) / 1000) };
    let methods: readonly string[] | undefined;
    const config = await discovery(
      server,
      clientId,
      metadata,
      (...call) => {
        if (clientSecret === undefined) return None()(...call);
        // By default a provider takes Basic. If it takes both, the form is used, because it needs no encoding of its
        // own.
        const isPost = methods?.includes('client_secret_post') === true;
        return (isPost ? ClientSecretPost : ClientSecretBasic)(clientSecret)(...call);
      },
      options,
    );
    methods = config.serverMetadata().token_endpoint_auth_methods_supported;
    // The library lets some of Microsoft's addresses stand for every directory: anybody has one.
    if (new URL(config.serverMetadata().issuer).href !== server.href)
      throw new ProviderUnreachable(`${server.host}: it describes itself as another issuer`);
    enableNonRepudiationChecks(config);
    return config;
  }

  return {
    async begin(provider, { redirectUri, state, nonce, codeVerifier }, email) {
      try {
        const config = await configure(provider);
        const url = buildAuthorizationUrl(config, {
          redirect_uri: redirectUri,
          scope: 'openid email profile',
          state,
          nonce,
          code_challenge: await calculatePKCECodeChallenge(codeVerifier),
          code_challenge_method: 'S256',
          login_hint: email,
        });
        if (!isWebAddress(url, provider.issuer))
          return { outcome: 'away', detail: 'its authorization_endpoint is no https URL' };
        return { outcome: 'begun', url: url.href };
      } catch (error) {
        return failureOf(error, 'away');
      }
    },

    async finish(provider, secrets, answer) {
      let config: Configuration;
      try {
        config = await configure(provider, provider.clientSecret);
      } catch (error) {
        return failureOf(error, 'away');
      }
      try {
        const url = new URL(secrets.redirectUri);
        for (const [name, value] of Object.entries({ ...answer, state: secrets.state }))
          url.searchParams.set(name, value);
        const tokens = await authorizationCodeGrant(config, url, {
          expectedState: secrets.state,
          expectedNonce: secrets.nonce,
          pkceCodeVerifier: secrets.codeVerifier,
          idTokenExpected: true,
        });
        const claims = tokens.claims();
        if (!claims) return { outcome: 'refused', detail: 'there is no ID token', error: null };
        if (!SUBJECT.test(claims.sub))
          return { outcome: 'refused', detail: 'sub is not 1 to 255 of ASCII', error: null };
        // Some leave the email out of a token that comes with an access token.
        const isWhole = claims['email'] !== undefined;
        const userinfo =
          isWhole || config.serverMetadata().userinfo_endpoint === undefined
            ? claims
            : await fetchUserInfo(config, tokens.access_token, claims.sub);
        const idToken = tokens.id_token ?? '';
        return { outcome: 'verified', claims: { ...userinfo, sub: claims.sub }, idToken };
      } catch (error) {
        return failureOf(error, 'refused');
      }
    },

    async signOutUrl(provider, idToken) {
      try {
        const config = await configure(provider);
        if (config.serverMetadata().end_session_endpoint === undefined) return undefined;
        // No address to come back to: each provider would have to know it before, and refuses a sign-out with another.
        const url = buildEndSessionUrl(
          config,
          idToken === undefined ? {} : { id_token_hint: idToken },
        );
        return isWebAddress(url, provider.issuer) ? url.href : undefined;
      } catch {
        return undefined;
      }
    },
  };
}

/** The browser goes there: no `javascript:`, and no HTTP but of a provider on this machine. */
const isWebAddress = ({ protocol }: URL, issuer: string): boolean =>
  protocol === 'https:' || (protocol === 'http:' && new URL(issuer).protocol === 'http:');

/** @param otherwise - the kind of an error without a sign of one. Of the provider's answer only codes are kept. */
function failureOf(error: unknown, otherwise: 'away' | 'refused'): ProviderFailure {
  const cause = error instanceof Error ? error.cause : undefined;
  const unreachable = [error, cause].find((each) => each instanceof ProviderUnreachable);
  if (unreachable) return { outcome: 'away', detail: unreachable.message };
  const isOfBody =
    error instanceof ResponseBodyError || error instanceof AuthorizationResponseError;
  const code = isOfBody && ERROR_CODE.test(error.error) ? error.error : null;
  const status = error instanceof ResponseBodyError ? error.status : statusOf(cause);
  if (status >= 500) return { outcome: 'away', detail: `it answered ${status}` };
  const detail = code ?? reasonOf(error);
  return otherwise === 'away'
    ? { outcome: 'away', detail }
    : { outcome: 'refused', detail, error: code };
}

const statusOf = (cause: unknown): number => (cause instanceof Response ? cause.status : 0);
