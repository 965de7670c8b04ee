/** Settings of `npm start`. The services get all other variables of the environment. */
import {
  listenHost,
  integer,
  optionalFlag,
  platformSettings,
} from '@sluice/platform/settings/config';
import { z } from 'zod';

/** Settings of the supervisor alone: each service finds the misspelt names of its own settings. */
const supervisorSettings = {
  /** Directory of the data, relative to the checkout. */
  SLUICE_DIRECTORY: z.string().default('.sluice'),
  /** Absent: all services in one process. */
  PROCESS_PER_SERVICE: optionalFlag(),
  /** Of the services' log on stderr. Absent: lines for people on a terminal, else JSON. */
  LOG_FORMAT: z.enum(['pretty', 'json']).optional(),
};

export const SUPERVISOR_SETTING_NAMES = Object.keys(supervisorSettings);

export const standaloneSettings = platformSettings.extend({
  ...supervisorSettings,
  /** Absent: the embedded Postgres. */
  DATABASE_URL: platformSettings.shape.DATABASE_URL.optional(),
  SHARD_COUNT: integer(1, 256, 4),
  INTAKE_HOST: listenHost(),
  INTAKE_PORT: integer(1, 65_535, 8080),
  API_HOST: listenHost(),
  API_PORT: integer(1, 65_535, 8090),
  WORKER_HOST: listenHost(),
  WORKER_PORT: integer(1, 65_535, 8092),
  SIMULATOR_HOST: listenHost(),
  SIMULATOR_PORT: integer(1, 65_535, 8091),
  /** Of the payment provider. Absent: the simulator is started too. */
  STRIPE_SECRET_KEY: z.string().optional(),
  /** Absent: the result of `allowsPrivateAddresses`. */
  WEBHOOK_ALLOW_PRIVATE_ADDRESSES: optionalFlag(),
  /** Either one means that calls come through a proxy, from other machines. The services read them. */
  API_TRUSTED_PROXIES: z.string().optional(),
  DEMO_HOSTS: z.string().optional(),
  /** Short for the demo: if a user starts the receiver after Sluice, the default would be a wait of an hour. */
  WEBHOOK_LISTED_FAILURE_WAIT_MS: integer(1, 604_800_000, 10_000),
});

export type StandaloneSettings = z.infer<typeof standaloneSettings>;

const LOOPBACK = /^(127\.\d+\.\d+\.\d+|::1|localhost)$/;

/** Why the demo workspace must not be opened; undefined when it may. Its keys are public. */
export function demoRefusal(settings: StandaloneSettings): string | undefined {
  if (settings.NODE_ENV === 'production') return 'NODE_ENV is production';
  for (const name of ['INTAKE_HOST', 'API_HOST'] as const) {
    if (!LOOPBACK.test(settings[name]))
      return `${name} is ${settings[name]}, which others can reach`;
  }
  return undefined;
}

/**
 * Whether workers may send to private addresses. Receivers of the demo are on this machine. If others can reach the API,
 * a stranger's webhook could read other programs of this machine, such as the worker's `/metrics`.
 */
export const allowsPrivateAddresses = (settings: StandaloneSettings): boolean =>
  settings.WEBHOOK_ALLOW_PRIVATE_ADDRESSES ??
  (demoRefusal(settings) === undefined &&
    settings.API_TRUSTED_PROXIES === undefined &&
    settings.DEMO_HOSTS === undefined);

/** The address to reach a service by from this machine, which differs from one that means "all". */
export function addressOf(host: string, port: number): string {
  if (host === '0.0.0.0' || host === '::') return `http://127.0.0.1:${port}`;
  return host.includes(':') ? `http://[${host}]:${port}` : `http://${host}:${port}`;
}

export const HELP = `npm start: all of Sluice on this machine, with an embedded Postgres. Ctrl-C stops it.

It keeps its data in .sluice/, prints addresses, demo credentials and lines to try,
and starts a service again when it dies. The services' log goes to stderr.

Settings are environment variables: INTAKE_PORT=18080 npm start

  INTAKE_HOST, INTAKE_PORT    address of intake, for events   (127.0.0.1, 8080)
  API_HOST, API_PORT          address of the API and console  (127.0.0.1, 8090)
  WORKER_HOST, WORKER_PORT    the worker's /readyz, /metrics (127.0.0.1, 8092)
  SIMULATOR_HOST, SIMULATOR_PORT  the simulated payment provider (127.0.0.1, 8091)
  STRIPE_SECRET_KEY           the real payment provider instead; STRIPE_WEBHOOK_SECRET with it
  SLUICE_DIRECTORY            the data                     (.sluice)
  DATABASE_URL                a Postgres of yours, 15 or later, instead of the embedded one
  REDIS_URL                   a Redis for the queues, which are in Postgres otherwise
  WEBHOOK_LISTED_FAILURE_WAIT_MS  first wait of a delivery that fails, an hour in production (10000)
  SEALING_KEYS                encryption keys for secrets (generated once, kept with the data)
  SHARD_COUNT                 queues that events are spread over; fixed once there is data (4)
  PROCESS_PER_SERVICE=true    a process for each service, for more events a second and more memory
  LOG_LEVEL                   trace, debug, info, warn, error, fatal, silent (info)
  LOG_FORMAT                  pretty or json (pretty on a terminal)
  NODE_ENV=production         no demo workspace, and no private addresses
  WEBHOOK_ALLOW_PRIVATE_ADDRESSES  webhooks and imports reach private addresses (true while the demo workspace is
                              open, without API_TRUSTED_PROXIES and DEMO_HOSTS)

The demo workspace is open on loopback addresses only. docs/reference/settings.md lists every setting of the services.
`;
