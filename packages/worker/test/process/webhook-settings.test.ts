import { parseNetwork } from '@sluice/domain/delivery/network-address';
import { parseSettings } from '@sluice/platform/settings/config';
import { expect, test } from 'vitest';
import { workerSettings } from '../../src/process/settings.ts';
import { webhookOptions, webhookSettings } from '../../src/process/webhook-settings.ts';

test('without settings the numbers are the numbers of the spec', () => {
  expect(webhookOptions(parseSettings(webhookSettings, {}))).toEqual({
    timeoutMs: 4_000,
    allowPrivateAddresses: false,
    allowedNetworks: [],
    proxy: undefined,
    lanes: {
      listedFailureWaitMs: 3_600_000,
      giveUpAfterMs: 604_800_000,
      backoffBaseMs: 10_000,
      backoffCapMs: 3_600_000,
      windowMax: 64,
    },
  });
});

test('every number can be set', () => {
  const options = webhookOptions(
    parseSettings(webhookSettings, {
      WEBHOOK_TIMEOUT_MS: '1',
      WEBHOOK_LISTED_FAILURE_WAIT_MS: '2',
      WEBHOOK_BACKOFF_BASE_MS: '3',
      WEBHOOK_BACKOFF_CAP_MS: '4',
      WEBHOOK_GIVE_UP_AFTER_MS: '5',
      WEBHOOK_ALLOW_PRIVATE_ADDRESSES: 'true',
      WEBHOOK_WINDOW_MAX: '6',
      WEBHOOK_ALLOWED_NETWORKS: ' 10.1.0.0/16, fd12::/48,',
      WEBHOOK_PROXY_URL: 'http://user:secret@proxy.test:3128',
    }),
  );
  expect(options).toEqual({
    timeoutMs: 1,
    allowPrivateAddresses: true,
    allowedNetworks: [parseNetwork('10.1.0.0/16'), parseNetwork('fd12::/48')],
    proxy: {
      hostname: 'proxy.test',
      port: 3128,
      authorization: `Basic ${Buffer.from('user:secret').toString('base64')}`,
    },
    lanes: {
      listedFailureWaitMs: 2,
      backoffBaseMs: 3,
      backoffCapMs: 4,
      giveUpAfterMs: 5,
      windowMax: 6,
    },
  });
});

test('a proxy whose password cannot be read is named, and its password is not', () => {
  expect(() =>
    parseSettings(webhookSettings, { WEBHOOK_PROXY_URL: 'http://user:%zz@proxy.test:3128' }),
  ).toThrow(/WEBHOOK_PROXY_URL: has a user or password that is not percent-encoded$/);
});

test('a network that cannot be read is named', () => {
  expect(() =>
    parseSettings(webhookSettings, { WEBHOOK_ALLOWED_NETWORKS: '10.0.0.0/8,lan' }),
  ).toThrow('WEBHOOK_ALLOWED_NETWORKS: lan is no network such as 10.1.0.0/16');
});

test.each([
  ['12499', '25000', undefined],
  ['12500', '25000', /WEBHOOK_TIMEOUT_MS: is 12500.*half of DRAIN_TIMEOUT_MS, which is 25000/],
  ['60000', '25000', /Set DRAIN_TIMEOUT_MS above 120000/],
  ['60000', '120001', undefined],
])(
  'a request of %s ms and a stop of %s ms do not go together if the stop would cut the request',
  (timeoutMs, drainTimeoutMs, problem) => {
    const parse = () =>
      parseSettings(workerSettings, {
        DATABASE_URL: 'postgres://localhost/sluice',
        SEALING_KEYS: `1:${Buffer.alloc(32, 1).toString('base64')}`,
        WEBHOOK_TIMEOUT_MS: timeoutMs,
        DRAIN_TIMEOUT_MS: drainTimeoutMs,
      });
    if (problem === undefined) expect(parse).not.toThrow();
    else expect(parse).toThrow(problem);
  },
);
