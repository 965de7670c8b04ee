/**
 * Restrictions of a key that is made: its addresses, reads alone, and its end.
 *
 * Scopes are not among them: no role includes one, so a session cannot give it.
 */
import type { BodyOf } from '../client/operations.ts';
import { formText } from './form-text.ts';
import type { CredentialType } from '../sentences/key-text.ts';

/** Write keys are in pages and apps, which have every address. */
const isBindable = (type: CredentialType): boolean => type === 'service_account' || type === 'app';

/** Fields of the API's body; a field that was left empty is absent. */
export function restrictionsIn(
  form: HTMLFormElement,
): Pick<
  BodyOf<'post', '/v1/accounts/{account_id}/api_credentials'>,
  'ip_allowlist' | 'read_only' | 'expires_at'
> {
  const data = new FormData(form);
  const addresses = formText(form, 'addresses')
    .split(/[\s,]+/)
    .filter((each) => each !== '');
  const expires = formText(form, 'expires');
  return {
    ...(addresses.length > 0 && { ip_allowlist: addresses }),
    ...(data.has('read-only') && { read_only: true }),
    ...(expires !== '' && { expires_at: new Date(expires).toISOString() }),
  };
}

export function KeyRestrictions({ type }: { readonly type: CredentialType }) {
  return (
    <details>
      <summary>Restrictions</summary>
      {isBindable(type) && (
        <>
          <label htmlFor="key-addresses">Addresses and CIDR blocks, if not any</label>
          <input
            id="key-addresses"
            name="addresses"
            autoComplete="off"
            placeholder="203.0.113.0/24"
          />
          <label>
            <input type="checkbox" name="read-only" /> Reads alone
          </label>
        </>
      )}
      <label htmlFor="key-expires">Ends at, in the zone of this browser</label>
      <input id="key-expires" name="expires" type="datetime-local" />
    </details>
  );
}
