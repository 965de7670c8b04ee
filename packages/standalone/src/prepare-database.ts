/** Prepares a database for the services: schema, queues, roles, and the demo workspace or its absence. */
import { createDatabase } from '@sluice/database/connection/connection';
import { requireDatabase } from '@sluice/database/connection/database-away';
import {
  grantDatabaseRoles,
  makeServiceLogins,
  type ServiceLogin,
} from '@sluice/database/schema/database-roles';
import { migrate, MIGRATIONS } from '@sluice/database/schema/migrate';
import { revokeDemoCredentials, seedDemoWorkspace } from '@sluice/database/demo/seed-demo';
import { migrateQueues } from '@sluice/platform/queue/queue';

export const APPLICATION_NAME = 'sluice-standalone';
/** A silent one is reported within five seconds of the start. */
const CONNECT_MS_MAX = 3_000;
/** Of a migration of large tables, which takes minutes. */
const LINE_INTERVAL_MS = 2_000;

/**
 * May be run at every start.
 *
 * @param logins - of the services, to be made; on somebody else's server they are the operator's.
 * @param onNote - called every two seconds with the running migration.
 * @throws AppError DATABASE_UNAVAILABLE, MIGRATION_MISMATCH
 */
export async function prepareDatabase(
  url: string,
  hasDemo: boolean,
  logins: readonly ServiceLogin[],
  onNote: (line: string) => void,
): Promise<void> {
  const database = createDatabase({
    url,
    poolMax: 2,
    applicationName: APPLICATION_NAME,
    connectMsMax: CONNECT_MS_MAX,
    // A statement that fails because of it reports it.
    onError: () => {},
  });
  let running: string | undefined;
  const timer = setInterval(() => {
    if (running !== undefined) onNote(`migrating the database: ${running}`);
  }, LINE_INTERVAL_MS);
  try {
    await requireDatabase(database);
    await migrate(database, MIGRATIONS, (name) => (running = name));
    clearInterval(timer);
    if (hasDemo) await seedDemoWorkspace(database);
    else await revokeDemoCredentials(database);
    await migrateQueues(url);
    const roles = await grantDatabaseRoles(database);
    if (roles.outcome === 'granted' && logins.length > 0) await makeServiceLogins(database, logins);
  } finally {
    clearInterval(timer);
    await database.destroy();
  }
}
