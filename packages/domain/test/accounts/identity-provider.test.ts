import { domainOfEmail, judgeClaims } from '@sluice/domain/accounts/identity-provider';
import { expect, test } from 'vitest';

const PROVIDER = {
  issuer: 'https://login.acme.example',
  emailDomains: ['acme.example', 'acme.test'],
};

test.each([
  [{ email: 'ada@acme.example', email_verified: true }],
  [{ email: 'Ada@ACME.example', email_verified: 'true' }],
  [{ email: '"a@b"@acme.test', email_verified: 1 }],
])('a verified address of a domain of the account is accepted: %j', (claims) => {
  expect(judgeClaims(claims, PROVIDER)).toEqual({ outcome: 'accepted', email: claims.email });
});

test.each([
  [{}, 'no_email'],
  [{ email: 7, email_verified: true }, 'no_email'],
  [{ email: 'acme.example', email_verified: true }, 'no_email'],
  [{ email: 'ada@acme.example' }, 'unverified'],
  [{ email: 'ada@acme.example', email_verified: false }, 'unverified'],
  [{ email: 'ada@acme.example', email_verified: 'false' }, 'unverified'],
  [{ email: 'ada@acme.example', email_verified: null }, 'unverified'],
  [{ email: 'ada@acme.example', email_verified: {} }, 'unverified'],
  [{ email: 'ada@acme.example', email_verified: false, xms_edov: true }, 'unverified'],
  [{ email: 'ada@acme.example', xms_edov: 0 }, 'unverified'],
  [{ email: 'ada@mail.acme.example', email_verified: true }, 'other_domain'],
  [{ email: 'ada@acme.example.evil.test', email_verified: true }, 'other_domain'],
  [{ email: 'ada@acme.example@evil.test', email_verified: true }, 'other_domain'],
  [{ email: 'ada@', email_verified: true }, 'other_domain'],
])('any other is refused: %j', (claims, reason) => {
  expect(judgeClaims(claims, PROVIDER)).toEqual({ outcome: 'refused', reason });
});

test.each(['https://accounts.google.com', 'https://accounts.google.com/'])(
  'only Google accounts of the organisation are accepted, with either spelling of the issuer: %s',
  (issuer) => {
    const google = { ...PROVIDER, issuer };
    const claims = { email: 'ada@acme.example', email_verified: true };
    const refused = { outcome: 'refused', reason: 'other_domain' };
    expect(judgeClaims({ ...claims, hd: 'acme.test' }, google)).toMatchObject({
      outcome: 'accepted',
    });
    expect(judgeClaims(claims, google)).toEqual(refused);
    expect(judgeClaims({ ...claims, hd: 'evil.test' }, google)).toEqual(refused);
  },
);

const OF_ENTRA = { email: 'ada@acme.example', xms_edov: true };

test.each([
  'https://login.microsoftonline.com/7f1c/v2.0',
  'https://login.microsoftonline.us/7f1c/v2.0',
  'https://login.partner.microsoftonline.cn/7f1c/v2.0',
])('xms_edov stands for email_verified from Entra: %s', (issuer) => {
  const entra = { ...PROVIDER, issuer };
  for (const xms_edov of [true, 'true', 1, '1'])
    expect(judgeClaims({ ...OF_ENTRA, xms_edov }, entra)).toMatchObject({ outcome: 'accepted' });
  for (const claims of [
    { ...OF_ENTRA, xms_edov: 0 },
    { ...OF_ENTRA, email_verified: false },
  ])
    expect(judgeClaims(claims, entra)).toMatchObject({ reason: 'unverified' });
});

// Security: at any other provider it may be an attribute that its users fill.
test.each([
  'https://login.acme.example',
  'https://login.microsoftonline.com.evil.test/7f1c/v2.0',
  'https://evil.test/login.microsoftonline.com/',
  'https://login-microsoftonline.com/7f1c/v2.0',
  'https://loginXmicrosoftonline.com/7f1c/v2.0',
  'http://login.microsoftonline.com/7f1c/v2.0',
])('xms_edov from another issuer does not verify an address: %s', (issuer) => {
  expect(judgeClaims(OF_ENTRA, { ...PROVIDER, issuer })).toEqual({
    outcome: 'refused',
    reason: 'unverified',
  });
});

test('the domain of an address is the text after its last @, in lower case', () => {
  expect(domainOfEmail('Ada@Acme.Example')).toBe('acme.example');
});
