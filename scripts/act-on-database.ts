/**
 * Common frame of the operator's programs: settings from the environment, one connection to Postgres, and a fault as
 * one line. A fault ends the program with 2, because 1 is for findings (`verify`, `secrets lost`).
 */
import { fileURLToPath } from 'node:url';
import { parseArgs, type ParseArgsConfig } from 'node:util';
import { findRunningStart } from '@sluice/command-line/connection/running-start';
import { createDatabase, type Database } from '@sluice/database/connection/connection';
import { requireDatabase } from '@sluice/database/connection/database-away';
import { checkSchema } from '@sluice/database/schema/schema-version';
import { reasonOf } from '@sluice/domain/values/errors';
import { parseSettings, platformSettings } from '@sluice/platform/settings/config';
import type { z } from 'zod';

const COULD_NOT = 2;

/** The only setting of programs that use Postgres alone. */
export const databaseSettings = platformSettings.pick({ DATABASE_URL: true });

/** The environment; without a DATABASE_URL the settings of the `npm start` that runs from this checkout, if one does. */
export function readEnvironment(): Readonly<Record<string, string | undefined>> {
  if (process.env['DATABASE_URL']) return process.env;
  const root = fileURLToPath(new URL('..', import.meta.url));
  const start = findRunningStart(root, process.env, (pid) => void process.kill(pid, 0));
  if (start === undefined) return process.env;
  return { ...start.settings, ...process.env, DATABASE_URL: start.settings['DATABASE_URL'] };
}

/** The typed words. If one is no word of the program, it prints its usage and ends with 2. */
export function readWords<Config extends ParseArgsConfig>(
  usage: string,
  config: Config,
): ReturnType<typeof parseArgs<Config>> {
  try {
    return parseArgs(config);
  } catch (error) {
    console.error(`${reasonOf(error)}\n${usage}`);
    process.exit(COULD_NOT);
  }
}

/**
 * @param program - its name, by which Postgres shows its connection.
 * @param requireSchema - checks the schema that its statements need; by default this version's.
 */
export async function actOnDatabase<Schema extends z.ZodType<{ readonly DATABASE_URL: string }>>(
  program: string,
  schema: Schema,
  act: (database: Database, settings: z.infer<Schema>) => Promise<void>,
  requireSchema: (database: Database) => Promise<void> = checkSchema,
): Promise<void> {
  // As of `sluice verify | head`, whose reader has had enough, or on a full disk.
  process.stdout.on('error', (error: NodeJS.ErrnoException) => {
    console.error(
      error.code === 'EPIPE'
        ? 'ended early: the reader closed the output'
        : `ended early: the output could not be written (${error.message})`,
    );
    process.exit(COULD_NOT);
  });
  try {
    const settings = parseSettings(schema, readEnvironment());
    const database = createDatabase({
      url: settings.DATABASE_URL,
      poolMax: 1,
      // A silent Postgres is reported while the operator still looks.
      connectMsMax: 3_000,
      applicationName: `sluice-${program}`,
      onError: (error) => console.error(error.message),
    });
    try {
      await requireDatabase(database);
      await requireSchema(database);
      await act(database, settings);
    } finally {
      await database.destroy();
    }
  } catch (error) {
    console.error(reasonOf(error));
    process.exitCode = COULD_NOT;
  }
}
