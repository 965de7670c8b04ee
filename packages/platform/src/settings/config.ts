/**
 * Settings: environment variables, unit last, one zod schema a service, parsed once in `main.ts`.
 * Every problem is listed, not only the first.
 */
import {
  IMPORT_SIZE_BYTES_DEFAULT,
  IMPORT_STORAGE_SIZE_BYTES_DEFAULT,
  UNFINISHED_IMPORTS_SIZE_BYTES_DEFAULT,
} from '@sluice/domain/imports/import-limits';
import { FILL_PERCENT_MAX } from '@sluice/domain/operations/broker-fill';
import { AppError } from '@sluice/domain/values/errors';
import { z } from 'zod';
import { parseRedisUrl } from './redis-url.ts';

/** An integer setting with bounds; the environment gives text. */
export const integer = (min: number, max: number, fallback: number) => {
  const error = `must be a whole number from ${min} to ${max}`;
  return z.coerce.number({ error }).int(error).min(min, error).max(max, error).default(fallback);
};

/** `true`/`false`/`1`/`0`. */
export const flag = (fallback: boolean) =>
  flagText.default(fallback ? 'true' : 'false').transform(isTrue);

/** A flag whose default depends on other settings; `undefined` if it is absent. */
export const optionalFlag = () =>
  flagText.optional().transform((text) => (text === undefined ? undefined : isTrue(text)));

const flagText = z.enum(['true', 'false', '1', '0']);
const isTrue = (text: z.infer<typeof flagText>): boolean => text === 'true' || text === '1';

/** The `…_HOST` of a process that listens. */
export const listenHost = (description = 'address to listen on') =>
  z.string().default('127.0.0.1').describe(description);

/** The `…_PORT` of a process that listens. */
export const listenPort = (fallback: number) =>
  integer(0, 65_535, fallback).describe('port to listen on. 0: any free port');

/** Of the processes that take calls. */
export const demoHosts = () =>
  z
    .string()
    .default('')
    .transform((text) =>
      text
        .toLowerCase()
        .split(',')
        .map((name) => name.trim())
        .filter((name) => name !== ''),
    )
    .describe(
      'comma-separated host names, without ports, for which the tokens and keys of the demo workspace are valid. Absent: they are valid on this machine only, and not through a proxy',
    );

/** The `…_ADMIN_PORT` of a process that listens. */
export const adminPort = () =>
  z.coerce
    .number()
    .int()
    .min(0)
    .max(65_535)
    .optional()
    .describe(
      'port of `/metrics` and of the details of `/readyz`, on the address of the service. Absent: the port of the service, and in production no port',
    );

/** Of the processes that add commit batches: intake, and `npm run parked`. */
export const addingSettings = {
  REDIS_FILL_PERCENT_MAX: integer(50, 98, FILL_PERCENT_MAX).describe(
    'percentage of `maxmemory` from which on Redis gets no more calls, because workers need the rest. Calls resume 5 points lower, or after 10 s below the limit',
  ),
};

/** Of the processes that keep the files of imports: the API takes them, the worker fetches them. */
export const importSettings = z.object({
  IMPORT_SIZE_BYTES_MAX: integer(1, Number.MAX_SAFE_INTEGER, IMPORT_SIZE_BYTES_DEFAULT).describe(
    'maximum size of one file of an import, uploaded or fetched',
  ),
  IMPORT_UNFINISHED_SIZE_BYTES_MAX: integer(
    1,
    Number.MAX_SAFE_INTEGER,
    UNFINISHED_IMPORTS_SIZE_BYTES_DEFAULT,
  ).describe(
    "maximum total size of the files of a workspace's unfinished imports, which are in Postgres; beyond it, the API answers 409",
  ),
  IMPORT_STORAGE_SIZE_BYTES_MAX: integer(
    1,
    Number.MAX_SAFE_INTEGER,
    IMPORT_STORAGE_SIZE_BYTES_DEFAULT,
  ).describe(
    'maximum total size of the files of all unfinished imports. The last share of it is reserved for workspaces below their own share (WORKSPACE_SHARE_PERCENT). Beyond it, the API answers 503, and files that workers fetch wait',
  ),
});

/** The URL of a Postgres database. */
export const databaseUrl = () =>
  z.url({
    protocol: /^postgres(ql)?$/,
    error: ({ input }) =>
      input === undefined
        ? 'must be set, as postgres://user:password@host:5432/database'
        : 'must be like postgres://user:password@host:5432/database; characters like # / ? of a password are percent-encoded',
  });

/** The database login of one service, a member of its role (`database/src/schema/database-roles.ts`). */
export const serviceDatabaseUrl = (role: string) =>
  databaseUrl()
    .optional()
    .describe(
      `URL of the same database with a login of this service, a member of the role \`${role}\`. Absent: \`DATABASE_URL\``,
    );

/** Settings that every process has. */
export const platformSettings = z.object({
  NODE_ENV: z
    .enum(['development', 'test', 'production'], {
      error: 'must be development, test or production',
    })
    .default('development')
    .describe(
      'kind of environment, `development`, `test` or `production`. In `production` there is no demo workspace, private addresses need permission, and the API requires `API_SECRET`',
    ),
  WORKSPACE_SHARE_PERCENT: integer(1, 100, 25).describe(
    'share of each workspace, as a percentage, of common resources: pending bytes, streams, live tails, the local disk buffer, the storage for imports. Beyond its share, a workspace gets more only while one share stays free for the others. Of request bodies, streams and live tails half a share more stays free, for workspaces that hold little',
  ),
  LOG_LEVEL: z
    .enum(['trace', 'debug', 'info', 'warn', 'error', 'fatal', 'silent'])
    .default('info')
    .describe('minimum level of logged lines'),
  DATABASE_URL: databaseUrl().describe('URL of Postgres, version 15 or later'),
  DATABASE_POOL_MAX: integer(2, 500, 10).describe(
    'maximum Postgres connections of one worker or API process; a worker has one more, intake has 2. With the queues in Postgres, intake and the API have 8 more, and a worker 11 more',
  ),
  REDIS_URL: z
    .string()
    .superRefine((text, context) => {
      const problem = redisUrlProblem(text);
      if (problem !== undefined) context.addIssue({ code: 'custom', message: problem });
    })
    .optional()
    .describe(
      'URL of Redis: redis://, or redis-sentinel://host:port,…?master=NAME, or redis-cluster://host:port,…. Absent: the queues are in Postgres',
    ),
  QUEUE_PREFIX: z
    .string()
    .regex(/^[a-zA-Z0-9_-]+$/)
    .default('sluice')
    .describe('prefix of every Redis key'),
  SHARD_COUNT: integer(1, 256, 16).describe(
    'number of queues that events are spread over; must be the same in every process and must never change',
  ),
  QUEUE_STALLED_AFTER_MS: integer(1_000, 600_000, 15_000).describe(
    'time of silence after which a worker loses its job to another worker',
  ),
  DRAIN_TIMEOUT_MS: integer(100, 600_000, 25_000).describe(
    'maximum time of a shutdown; afterwards the process exits with work unfinished',
  ),
});

function redisUrlProblem(text: string): string | undefined {
  try {
    parseRedisUrl(text);
    return undefined;
  } catch (error) {
    return (error as Error).message;
  }
}

/**
 * Parses the environment against a service's schema. An empty variable counts as absent.
 *
 * @throws AppError CONFIG_INVALID with every problem.
 */
export function parseSettings<Schema extends z.ZodType>(
  schema: Schema,
  environment: Record<string, string | undefined>,
): z.infer<Schema> {
  const given = Object.fromEntries(Object.entries(environment).filter(([, value]) => value !== ''));
  const parsed = schema.safeParse(given);
  if (parsed.success) return parsed.data;
  throw new AppError(
    'CONFIG_INVALID',
    `settings that cannot be used: ${describeProblems(parsed.error)}`,
  );
}

/** Every problem on one line, each with the place where it is. */
export const describeProblems = ({ issues }: z.ZodError): string =>
  issues.map(({ path, message }) => `${path.join('.')}: ${message}`).join('; ');

const KEY_SIZE_BYTES = 32;

/** Of the processes that read or write secrets. */
export const encryptionSettings = z.object({
  SEALING_KEYS: z
    .string({ error: 'must be set as id:key; make a key with openssl rand -base64 32' })
    .transform((text, context) => {
      const keys = text.split(',').map((part) => {
        const [id = '', encoded = ''] = part.trim().split(/:(.*)/s);
        return { id, key: Buffer.from(encoded, 'base64') };
      });
      const [first, ...others] = keys;
      const isBad = ({ id, key }: (typeof keys)[number]) =>
        !/^[\w-]{1,32}$/.test(id) || key.length !== KEY_SIZE_BYTES;
      if (!first || keys.some(isBad) || new Set(keys.map(({ id }) => id)).size < keys.length) {
        const message =
          'must be one or more id:key pairs separated by commas, each key 32 bytes in base64';
        context.addIssue({ code: 'custom', message });
        return z.NEVER;
      }
      return [first, ...others] as const;
    })
    .describe(
      'encryption keys for secrets in the database, `id:base64 of 32 bytes`, comma-separated. The first key encrypts, every key decrypts',
    ),
});
