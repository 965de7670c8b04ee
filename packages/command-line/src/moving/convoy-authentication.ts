/** Credentials of Convoy's endpoints: a header, an OAuth2 client, a client certificate. Pure. */
import { isJsonObject, type Json, type JsonObject } from '@sluice/domain/values/json';
import { type MovedSettings, textOf } from './moved-endpoint.ts';

interface MovedAuthentication {
  /** Fields of the endpoint here. */
  readonly settings: Partial<MovedSettings>;
  readonly byHand: readonly string[];
}

export function authenticationOf(endpoint: JsonObject): MovedAuthentication {
  const parts = [headerOrClientOf(endpoint['authentication']), certificateOf(endpoint)];
  return {
    settings: Object.assign({}, ...parts.map(({ settings }) => settings)) as Partial<MovedSettings>,
    byHand: parts.flatMap(({ byHand }) => byHand),
  };
}

const NONE: MovedAuthentication = { settings: {}, byHand: [] };
const partOf = (whole: Json | undefined, name: string): string | undefined =>
  isJsonObject(whole ?? null) ? textOf((whole as JsonObject)[name]) : undefined;

function headerOrClientOf(given: Json | undefined): MovedAuthentication {
  const type = partOf(given, 'type');
  if (type === undefined) return NONE;
  const { api_key: key, oauth2: client } = given as JsonObject;
  const [name, value] = [partOf(key, 'header_name'), partOf(key, 'header_value')];
  if (name !== undefined && value !== undefined)
    return { settings: { headers: { [name]: value } }, byHand: [] };
  const oauth2 = clientOf(client);
  return oauth2
    ? { settings: { oauth2 }, byHand: [] }
    : { settings: {}, byHand: [`authentication ${type}`] };
}

/** Undefined for a signed assertion, another grant, or another form of the token's answer. */
function clientOf(given: Json | undefined): MovedSettings['oauth2'] | undefined {
  const url = partOf(given, 'url');
  const id = partOf(given, 'client_id');
  const secret = partOf(given, 'client_secret');
  if (url === undefined || id === undefined || secret === undefined) return undefined;
  const isPlain =
    ['shared_secret', undefined].includes(partOf(given, 'authentication_type')) &&
    ['client_credentials', undefined].includes(partOf(given, 'grant_type')) &&
    ['seconds', undefined].includes(partOf(given, 'expiry_time_unit')) &&
    Object.keys((given as JsonObject)['field_mapping'] ?? {}).length === 0;
  if (!isPlain || isHidden(secret)) return undefined;
  const [scope, audience] = [partOf(given, 'scope'), partOf(given, 'audience')];
  return {
    token_url: url,
    client_id: id,
    client_secret: secret,
    client_authentication: 'body',
    ...(scope !== undefined && { scope }),
    ...(audience !== undefined && { audience }),
  };
}

/** Newer versions of Convoy show no private key. */
function certificateOf({ mtls_client_cert: given }: JsonObject): MovedAuthentication {
  if (!isJsonObject(given ?? null)) return NONE;
  const certificate = partOf(given, 'client_cert');
  const key = partOf(given, 'client_key');
  if (certificate === undefined && key === undefined) return NONE;
  return certificate === undefined || key === undefined || isHidden(key)
    ? { settings: {}, byHand: ['client certificate: its private key is not shown'] }
    : {
        settings: { client_certificate: { certificate, private_key: key } },
        byHand: [],
      };
}

const isHidden = (secret: string): boolean => /^\[?redacted\]?$|^\*+$/i.test(secret);
