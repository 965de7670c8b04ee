/**
 * `sluice purchases list|release`: purchases of `DATABASE_URL` that were set aside for a person. A program of
 * the operator's and not of the API: whoever decides has looked at the payment vendor's books, of all accounts.
 */
import { parseArgs } from 'node:util';
import { createDatabase } from '@sluice/database/connection';
import { listSetAsideRuns, releaseSetAsideRun } from '@sluice/database/set-aside-runs';
import { reasonOf } from '@sluice/domain/errors';

const LISTED_MAX = 1_000;
const USAGE = 'usage: sluice purchases list, or sluice purchases release <run-id>';

const { values, positionals } = parseArgs({
  options: { json: { type: 'boolean', default: false } },
  allowPositionals: true,
});
const [action, runId] = positionals;
if (action !== 'list' && (action !== 'release' || runId === undefined)) fail(USAGE, 2);
const url = process.env['DATABASE_URL'];
if (url === undefined || url === '')
  fail('DATABASE_URL is not set: DATABASE_URL=postgres://… sluice purchases list', 2);
const database = createDatabase({
  url,
  poolMax: 1,
  applicationName: 'sluice-purchases',
  onError: (error) => console.error(error.message),
});
try {
  if (runId === undefined) await list();
  else await release(runId);
} catch (error) {
  console.error(reasonOf(error));
  process.exitCode = 1;
} finally {
  await database.destroy();
}

async function list(): Promise<void> {
  const runs = await listSetAsideRuns(database, LISTED_MAX);
  if (values.json) return console.log(JSON.stringify(runs));
  if (runs.length === 0) console.log('nothing');
  for (const { accountId, runId: id, kind, status, createdAt, reviewReason } of runs)
    console.log(
      `${id}  account ${accountId}  ${kind}  ${status}  ${createdAt.toISOString()}  ${reviewReason}`,
    );
}

async function release(id: string): Promise<void> {
  const origin = { actor: { type: 'system' } } as const;
  const released = await releaseSetAsideRun(database, id, origin, Date.now());
  if (!released) throw new Error(`no purchase ${id} is set aside: sluice purchases list`);
  if (values.json) return console.log(JSON.stringify(released));
  console.log(
    released.status === 'pending'
      ? `${id} goes on: a worker takes it up within a second`
      : `${id} had ended (${released.status}) and is looked at`,
  );
}

function fail(message: string, exitCode: number): never {
  console.error(message);
  process.exit(exitCode);
}
