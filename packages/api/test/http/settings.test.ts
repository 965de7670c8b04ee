import { parseSettings } from '@sluice/platform/settings/config';
import { expect, test } from 'vitest';
import { apiSettings } from '../../src/settings.ts';

const ENVIRONMENT = {
  DATABASE_URL: 'postgres://db/sluice',
  SEALING_KEYS: `1:${Buffer.alloc(32).toString('base64')}`,
};

test.each([
  ['SMTP_URL', 'smtp.example.com', /SMTP_URL: must be like smtp:/],
  ['SMTP_URL', 'smtp://user:se#cret@mail:587', /SMTP_URL: must be like smtp:.* percent-encoded$/],
  [
    'API_TRUSTED_PROXIES',
    '10.0.0.1,nginx',
    /API_TRUSTED_PROXIES\.1: must be an address or a network/,
  ],
])('the error for %s=%s describes the format and reveals no password', (name, text, message) => {
  const parse = () => parseSettings(apiSettings, { ...ENVIRONMENT, [name]: text });
  expect(parse).toThrow(message);
  expect(parse).not.toThrow(/se#cret/);
});
