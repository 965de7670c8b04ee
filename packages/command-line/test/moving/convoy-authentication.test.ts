/** Credentials of Convoy's endpoints are moved, or named for the owner. */
import type { JsonObject } from '@sluice/domain/values/json';
import { expect, test } from 'vitest';
import { authenticationOf } from '../../src/moving/convoy-authentication.ts';

const CLIENT = { url: 'https://login.example/token', client_id: 'c', client_secret: 's' };
const CERTIFICATE = { client_cert: 'PEM of a certificate', client_key: 'PEM of a key' };

test.each<[string, JsonObject, JsonObject]>([
  ['nothing', {}, {}],
  ['an empty certificate', { mtls_client_cert: {} }, {}],
  [
    'a header',
    { authentication: { type: 'api_key', api_key: { header_name: 'x-a', header_value: 'b' } } },
    { headers: { 'x-a': 'b' } },
  ],
  [
    'an OAuth2 client',
    {
      authentication: {
        type: 'oauth2',
        oauth2: {
          ...CLIENT,
          authentication_type: 'shared_secret',
          scope: 'a b',
          field_mapping: {},
        },
      },
    },
    {
      oauth2: {
        token_url: CLIENT.url,
        client_id: 'c',
        client_secret: 's',
        client_authentication: 'body',
        scope: 'a b',
      },
    },
  ],
  [
    'a certificate with its key',
    { mtls_client_cert: CERTIFICATE },
    {
      client_certificate: {
        certificate: CERTIFICATE.client_cert,
        private_key: CERTIFICATE.client_key,
      },
    },
  ],
])('%s is moved', (_name, endpoint, settings) => {
  expect(authenticationOf(endpoint)).toEqual({ settings, byHand: [] });
});

const clientWith = (more: JsonObject): JsonObject => ({
  authentication: { type: 'oauth2', oauth2: { ...CLIENT, ...more } },
});

test.each<[string, JsonObject, string]>([
  [
    'a key that is not shown',
    { mtls_client_cert: { ...CERTIFICATE, client_key: '[REDACTED]' } },
    'client certificate: its private key is not shown',
  ],
  [
    'a certificate alone',
    { mtls_client_cert: { client_cert: CERTIFICATE.client_cert } },
    'client certificate: its private key is not shown',
  ],
  ['a secret that is not shown', clientWith({ client_secret: '****' }), 'authentication oauth2'],
  [
    'a signed assertion',
    clientWith({ authentication_type: 'client_assertion' }),
    'authentication oauth2',
  ],
  ['another grant', clientWith({ grant_type: 'password' }), 'authentication oauth2'],
  ['milliseconds', clientWith({ expiry_time_unit: 'milliseconds' }), 'authentication oauth2'],
  [
    'other names in the answer',
    clientWith({ field_mapping: { access_token: 'token' } }),
    'authentication oauth2',
  ],
])('%s is set by hand', (_name, endpoint, byHand) => {
  expect(authenticationOf(endpoint)).toEqual({ settings: {}, byHand: [byHand] });
});
