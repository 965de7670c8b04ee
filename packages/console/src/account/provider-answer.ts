/**
 * The answer of an identity provider, which the browser brings to `/sign-in/{account}`. It is taken out of the address
 * at once, so that neither the history nor a copied address has it; alone it does not open a session.
 */
import { own, request } from '../client/request.ts';

const RETURN_PATH = /^\/sign-in\/([1-9]\d{0,9})$/;
/** Codes of RFC 6749 §4.1.2.1 and OpenID Connect: any other text is a stranger's. */
const ERROR_CODE = /^[a-z_]{1,40}$/;

export interface ProviderAnswer {
  readonly accountId: number;
  readonly code: string | null;
  readonly state: string | null;
  readonly issuer: string | null;
  readonly error: string | null;
}

/** Undefined on any other page. */
export function takeProviderAnswer(): ProviderAnswer | undefined {
  const accountId = Number(RETURN_PATH.exec(location.pathname)?.[1]);
  if (!Number.isSafeInteger(accountId)) return undefined;
  const query = new URLSearchParams(location.search);
  history.replaceState(null, '', '/');
  return {
    accountId,
    code: query.get('code'),
    state: query.get('state'),
    issuer: query.get('iss'),
    error: query.get('error'),
  };
}

/** Opens the session, and puts the screen that was asked for into the address. @returns why the provider did not sign the person in. @throws RequestFailed */
export async function giveProviderAnswer(answer: ProviderAnswer): Promise<string | undefined> {
  const { accountId, code, state, issuer, error } = answer;
  if (code === null || state === null) {
    if (error === null) return undefined;
    if (error === 'access_denied') return 'The identity provider did not let you in.';
    const what = ERROR_CODE.test(error) ? `: ${error}` : '';
    return `The identity provider did not sign you in${what}.`;
  }
  const body = { account_id: accountId, code, state, ...(issuer !== null && { iss: issuer }) };
  const opened = await request(
    own<{ return_path: string } | undefined>('post', '/console/session/provider/finish', body),
  );
  // A path of ours, which the API has checked; the browser takes no other origin here anyway.
  if (opened) history.replaceState(null, '', opened.return_path);
  return undefined;
}
