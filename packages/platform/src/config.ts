/**
 * Settings: environment variables, unit last, one zod schema a service, parsed once in `main.ts`.
 * Every problem is listed, not only the first.
 */
import { AppError } from '@sluice/domain/errors';
import { z } from 'zod';

/** An integer setting with bounds; the environment gives text. */
export const integer = (min: number, max: number, fallback: number) =>
  z.coerce.number().int().min(min).max(max).default(fallback);

/** `true`/`false`/`1`/`0`. */
export const flag = (fallback: boolean) =>
  z
    .enum(['true', 'false', '1', '0'])
    .default(fallback ? 'true' : 'false')
    .transform((text) => text === 'true' || text === '1');

/** Settings that every process has. */
export const platformSettings = z.object({
  NODE_ENV: z.string().default('development'),
  LOG_LEVEL: z.enum(['trace', 'debug', 'info', 'warn', 'error', 'fatal', 'silent']).default('info'),
  DATABASE_URL: z.url({ protocol: /^postgres(ql)?$/ }),
  DATABASE_POOL_MAX: integer(2, 500, 10),
  /** Absent: BullMQ runs on the database. */
  REDIS_URL: z.string().optional(),
  QUEUE_PREFIX: z
    .string()
    .regex(/^[a-zA-Z0-9_-]+$/)
    .default('sluice'),
  SHARD_COUNT: integer(1, 256, 16),
  /** A worker that says nothing for so long loses its job to another one, which takes a third of it more. */
  QUEUE_STALLED_AFTER_MS: integer(1_000, 600_000, 15_000),
  DRAIN_TIMEOUT_MS: integer(100, 600_000, 25_000),
});

/**
 * Parses the environment against a service's schema. An empty variable counts as absent.
 *
 * @throws AppError CONFIG_INVALID with one line a problem.
 */
export function parseSettings<Schema extends z.ZodType>(
  schema: Schema,
  environment: Record<string, string | undefined>,
): z.infer<Schema> {
  const given = Object.fromEntries(Object.entries(environment).filter(([, value]) => value !== ''));
  const parsed = schema.safeParse(given);
  if (parsed.success) return parsed.data;
  const problems = parsed.error.issues.map(
    (issue) => `  ${issue.path.join('.')}: ${issue.message}`,
  );
  throw new AppError('CONFIG_INVALID', `settings that cannot be used:\n${problems.join('\n')}`);
}
