/** The fields by which an endpoint identifies the sender: a client certificate, an authority, an OAuth2 client. */
import { formText } from '../forms/form-text.ts';
import {
  certificateText,
  changedCredentials,
  type Credential,
  type Credentials,
  credentialText,
} from '../sentences/credential-text.ts';
import { visibleText } from '../sentences/visible-text.ts';

const NONE: Credentials = { client_certificate: null, certificate_authority: null, oauth2: null };
const CREDENTIALS: readonly Credential[] = [
  'client_certificate',
  'certificate_authority',
  'oauth2',
];

export function CredentialFields({
  credentials = NONE,
}: {
  /** Absent: of a new webhook. */
  readonly credentials?: Credentials | undefined;
}) {
  const { client_certificate: client, certificate_authority: authority, oauth2 } = credentials;
  return (
    <details className="stack" open={credentialText(credentials) !== ''}>
      <summary>Proof of the sender: client certificate, authority, OAuth2</summary>
      <div className="stack">
        <p className="faint">
          Secrets are stored encrypted and are not shown again. An empty field keeps the stored
          value.
        </p>
        <PemField
          name="certificate"
          label="Client certificate (PEM, with those between it and its authority behind it)"
          begin="CERTIFICATE"
        />
        <PemField
          name="private_key"
          label="Private key of the client certificate (PEM, without a passphrase)"
          begin="PRIVATE KEY"
        />
        <Stored
          name="client_certificate"
          text={client && certificateText(client)}
          what="the client certificate"
        />
        <PemField
          name="certificate_authority"
          label="Authorities that the endpoint's certificate may come from (PEM, or empty for the well-known ones)"
          begin="CERTIFICATE"
        />
        <Stored
          name="certificate_authority"
          text={authority && authority.map(certificateText).join('; ')}
          what="the authority"
        />
        <TextField
          name="token_url"
          label="OAuth2: address that issues tokens"
          value={oauth2?.token_url}
        />
        <TextField name="client_id" label="OAuth2: client id" value={oauth2?.client_id} />
        <label htmlFor="credential-client_secret">OAuth2: client secret</label>
        <input
          id="credential-client_secret"
          name="client_secret"
          type="password"
          autoComplete="new-password"
          placeholder={oauth2?.client_secret ?? ''}
        />
        <label htmlFor="credential-client_authentication">OAuth2: the secret is sent</label>
        <select
          id="credential-client_authentication"
          name="client_authentication"
          defaultValue={oauth2?.client_authentication ?? 'basic'}
        >
          <option value="basic">in the Authorization header</option>
          <option value="body">in the body</option>
        </select>
        <TextField name="scope" label="OAuth2: scope" value={oauth2?.scope} />
        <TextField name="audience" label="OAuth2: audience" value={oauth2?.audience} />
        <Stored
          name="oauth2"
          text={oauth2 && `Secret ${oauth2.client_secret}. A change of OAuth2 needs it again.`}
          what="the OAuth2 client"
        />
      </div>
    </details>
  );
}

function PemField({
  name,
  label,
  begin,
}: {
  readonly name: string;
  readonly label: string;
  readonly begin: string;
}) {
  const id = `credential-${name}`;
  return (
    <>
      <label htmlFor={id}>{label}</label>
      <textarea
        id={id}
        name={name}
        rows={2}
        autoComplete="off"
        spellCheck={false}
        placeholder={`-----BEGIN ${begin}-----`}
      />
    </>
  );
}

function TextField({
  name,
  label,
  value,
}: {
  readonly name: string;
  readonly label: string;
  readonly value: string | null | undefined;
}) {
  const id = `credential-${name}`;
  return (
    <>
      <label htmlFor={id}>{label}</label>
      <input id={id} name={name} autoComplete="off" spellCheck={false} defaultValue={value ?? ''} />
    </>
  );
}

/** Identification of a stored credential, and the box that takes it away. */
function Stored({
  name,
  text,
  what,
}: {
  readonly name: Credential;
  readonly text: string | null;
  readonly what: string;
}) {
  if (text === null) return null;
  return (
    <>
      <p className="faint clip">Stored: {visibleText(text)}</p>
      <label>
        <input type="checkbox" name="removed" value={name} /> Remove {what}
      </label>
    </>
  );
}

/**
 * The request of a form with these fields.
 *
 * @param stored - absent: of a new webhook.
 * @param isElsewhere - the form sends to another server than the stored webhook.
 */
export const credentialsOf = (
  form: HTMLFormElement,
  stored: Credentials | undefined,
  isElsewhere: boolean,
) =>
  changedCredentials(
    {
      certificate: formText(form, 'certificate'),
      private_key: formText(form, 'private_key'),
      certificate_authority: formText(form, 'certificate_authority'),
      token_url: formText(form, 'token_url'),
      client_id: formText(form, 'client_id'),
      client_secret: formText(form, 'client_secret'),
      client_authentication: formText(form, 'client_authentication') as 'basic' | 'body',
      scope: formText(form, 'scope'),
      audience: formText(form, 'audience'),
      removed: CREDENTIALS.filter((name) => new FormData(form).getAll('removed').includes(name)),
    },
    stored,
    isElsewhere,
  );
