/**
 * Environment of the services of `npm start`.
 *
 * It has the given settings, the addresses of the services, and settings that fit one person who tries things out.
 */
import { createHmac, randomBytes } from 'node:crypto';
import { join } from 'node:path';
import { DEMO } from '@sluice/database/demo/seed-demo';
import type { ServiceLogin } from '@sluice/database/schema/database-roles';
import type { DatabaseRole } from '@sluice/database/schema/role-grants';
import {
  addressOf,
  allowsPrivateAddresses,
  demoRefusal,
  type StandaloneSettings,
} from './settings.ts';

export type ServiceEnvironment = Readonly<Record<string, string | undefined>>;

interface GivenSettings {
  readonly environment: ServiceEnvironment;
  readonly settings: StandaloneSettings;
}

/** One that is empty counts as absent, to the services too. */
export const givenEnvironment = (environment: ServiceEnvironment): ServiceEnvironment =>
  Object.fromEntries(Object.entries(environment).filter(([, value]) => value !== ''));

/**
 * @param database - the owner's URL, and the settings with each service's own login.
 * @param directory - of the data; the services keep files in it too.
 */
export function serviceEnvironment(
  { environment, settings }: GivenSettings,
  database: { readonly url: string; readonly serviceUrls: Readonly<Record<string, string>> },
  directory: string,
) {
  return {
    ...database.serviceUrls,
    CONSOLE_INTAKE_URL: addressOf(settings.INTAKE_HOST, settings.INTAKE_PORT),
    INTAKE_SPILL_DIRECTORY: join(directory, 'spill'),
    MAIL_DIRECTORY: join(directory, 'mail'),
    // For one person with one token who tries things out, the limits of a shared service would be in the way.
    API_RATE_LIMIT_PER_MINUTE: '6000',
    API_KEY_RATE_LIMIT_PER_SECOND: '100',
    // Our own events are the demo workspace's, to be looked at.
    ...(demoRefusal(settings) === undefined && {
      ANALYTICS_URL: addressOf(settings.INTAKE_HOST, settings.INTAKE_PORT),
      ANALYTICS_WRITE_KEY: DEMO.writeKey,
      WEBHOOK_LISTED_FAILURE_WAIT_MS: String(settings.WEBHOOK_LISTED_FAILURE_WAIT_MS),
      // A person who opens the demo on this machine runs it; visitors from elsewhere do not.
      ...(!environment['DEMO_HOSTS'] && { OPERATOR_ACCOUNT_IDS: String(DEMO.accountId) }),
    }),
    SIMULATOR_FILE: join(directory, 'simulator.sqlite'),
    SIMULATOR_WEBHOOK_URL: `${addressOf(settings.API_HOST, settings.API_PORT)}/v1/vendor_events`,
    // The simulator's and the API's, so that only the simulator can sign its events.
    ...(settings.STRIPE_SECRET_KEY === undefined && {
      STRIPE_WEBHOOK_SECRET: `whsec_${randomBytes(24).toString('base64url')}`,
    }),
    ...givenEnvironment(environment),
    DATABASE_URL: database.url,
    SHARD_COUNT: String(settings.SHARD_COUNT),
    INTAKE_HOST: settings.INTAKE_HOST,
    INTAKE_PORT: String(settings.INTAKE_PORT),
    API_HOST: settings.API_HOST,
    API_PORT: String(settings.API_PORT),
    WORKER_HOST: settings.WORKER_HOST,
    WORKER_PORT: String(settings.WORKER_PORT),
    SIMULATOR_HOST: settings.SIMULATOR_HOST,
    SIMULATOR_PORT: String(settings.SIMULATOR_PORT),
    SIMULATOR_URL: addressOf(settings.SIMULATOR_HOST, settings.SIMULATOR_PORT),
    WEBHOOK_ALLOW_PRIVATE_ADDRESSES: String(allowsPrivateAddresses(settings)),
  };
}

/** By the setting with which the service takes its login. */
const ROLES = {
  INTAKE_DATABASE_URL: 'sluice_intake',
  WORKER_DATABASE_URL: 'sluice_worker',
  API_DATABASE_URL: 'sluice_api',
} as const satisfies Readonly<Record<string, DatabaseRole>>;

/**
 * The three logins of the embedded Postgres, a member of a role each. Their passwords are made from the owner's, which
 * is kept in `postgres-password`: no further secret has to be kept or found.
 *
 * @param ownerUrl - with the owner's password.
 */
export function serviceLogins(ownerUrl: string): ServiceLogin[] {
  const { password } = new URL(ownerUrl);
  return Object.values(ROLES).map((role) => {
    const name = `${role}_login`;
    return { role, name, password: createHmac('sha256', password).update(name).digest('hex') };
  });
}

/** The settings of the services. */
export function serviceUrls(
  ownerUrl: string,
  logins: readonly ServiceLogin[],
): Record<string, string> {
  return Object.fromEntries(
    Object.entries(ROLES).flatMap(([setting, role]) => {
      const login = logins.find((each) => each.role === role);
      if (!login) return [];
      const url = new URL(ownerUrl);
      url.username = login.name;
      url.password = login.password;
      return [[setting, url.href]];
    }),
  );
}
