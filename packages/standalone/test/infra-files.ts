/** Files of `infra/`, and the settings that they are checked against. */
import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { apiSettings } from '@sluice/api/settings';
import { intakeSettings } from '@sluice/intake/settings';
import { parseSettings } from '@sluice/platform/settings/config';
import { workerSettings } from '@sluice/worker/process/settings';

const INFRA = fileURLToPath(new URL('../../../infra/', import.meta.url));
export const readInfra = (path: string): string => readFileSync(`${INFRA}${path}`, 'utf8');

/** Values that people put in the secrets of Kubernetes (`docs/operations/kubernetes.md`), and Compose into `.env`. */
export const SECRETS = {
  DATABASE_URL: 'postgres://of-the-secret/sluice',
  REDIS_URL: 'redis://of-the-secret:6379',
  API_SECRET: 'a'.repeat(64),
  SEALING_KEYS: `1:${Buffer.alloc(32, 1).toString('base64')}`,
};
const SCHEMAS = { intake: intakeSettings, api: apiSettings, worker: workerSettings };
type ServiceName = keyof typeof SCHEMAS;
export const SERVICES = Object.keys(SCHEMAS) as ServiceName[];

/** @throws Error if a service would not start. */
export const parseSettingsOf = (
  service: ServiceName,
  given: Readonly<Record<string, string | undefined>>,
) => parseSettings<(typeof SCHEMAS)[ServiceName]>(SCHEMAS[service], given);

export const defaultsOf = (service: ServiceName) =>
  parseSettingsOf(service, SECRETS) as unknown as Readonly<Record<string, number>>;
