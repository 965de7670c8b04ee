import { parseSettings } from '@sluice/platform/settings/config';
import { expect, test } from 'vitest';
import { addressOf, demoRefusal, HELP, standaloneSettings } from '../src/settings.ts';

const refusalOf = (environment: Record<string, string>): string | undefined =>
  demoRefusal(parseSettings(standaloneSettings, environment));

// Security: the demo keys are public knowledge.
test.each([
  [{ NODE_ENV: 'production' }, 'NODE_ENV is production'],
  [{ INTAKE_HOST: '0.0.0.0' }, 'INTAKE_HOST is 0.0.0.0'],
  [{ API_HOST: '::' }, 'API_HOST is ::'],
  [{ API_HOST: '192.168.1.7' }, 'API_HOST is 192.168.1.7'],
  [{ INTAKE_HOST: '127.0.0.1.example.com' }, 'INTAKE_HOST is'],
])('the demo workspace is refused with %j', (environment, reason) => {
  expect(refusalOf(environment)).toContain(reason);
});

test.each([{}, { INTAKE_HOST: 'localhost', API_HOST: '::1' }, { INTAKE_HOST: '127.8.8.8' }])(
  'the demo workspace is open with %j',
  (environment) => {
    expect(refusalOf(environment)).toBeUndefined();
  },
);

test('an address that means every interface is reached by loopback', () => {
  expect(addressOf('0.0.0.0', 8080)).toBe('http://127.0.0.1:8080');
  expect(addressOf('::', 8080)).toBe('http://127.0.0.1:8080');
  expect(addressOf('::1', 8080)).toBe('http://[::1]:8080');
});

test('the help names every setting that only npm start has', () => {
  for (const name of [
    'SLUICE_DIRECTORY',
    'LOG_FORMAT',
    'INTAKE_PORT',
    'API_PORT',
    'WORKER_PORT',
    'SHARD_COUNT',
  ]) {
    expect(HELP).toContain(name);
  }
});
