/**
 * `npm run verify`: checks that the books of `DATABASE_URL` are what was recorded, prints what differs
 * and ends with 1 where anything does. Reads only, and may run while everything is in use.
 *
 * A further check is a line in `CHECKS`.
 */
import { createDatabase, type Database } from '@sluice/database/connection';
import { countCreditGrants, listCreditDifferences } from '@sluice/database/verify-credits';
import { listAuditedAccounts, verifyAuditChain } from '@sluice/database/verify-audit-chains';

interface Check {
  readonly name: string;
  /** Says what it has checked; `report` takes each thing that differs. */
  readonly run: (database: Database, report: (message: string) => void) => Promise<string>;
}

const CHECKS: readonly Check[] = [
  { name: 'audit log', run: verifyAuditLogs },
  { name: 'credit pools', run: verifyCreditPools },
];

/** Of one check; what is beyond is counted. */
const PRINTED_MAX = 100;
const PROGRESS_INTERVAL_MS = 2_000;

const url = process.env['DATABASE_URL'];
if (url === undefined || url === '') {
  console.error('DATABASE_URL is not set: DATABASE_URL=postgres://… npm run verify');
  process.exit(1);
}
const database = createDatabase({
  url,
  poolMax: 1,
  applicationName: 'sluice-verify',
  onError: (error) => console.error(error.message),
});
try {
  for (const { name, run } of CHECKS) {
    let count = 0;
    const summary = await run(database, (message) => {
      if (++count <= PRINTED_MAX) console.error(`${name}: ${message}`);
    });
    if (count > PRINTED_MAX) console.error(`${name}: ${count - PRINTED_MAX} more`);
    if (count > 0) process.exitCode = 1;
    console.log(`${count === 0 ? 'ok    ' : 'FAILED'} ${name}: ${summary}`);
  }
} catch (error) {
  console.error((error as Error).message);
  process.exitCode = 1;
} finally {
  await database.destroy();
}

async function verifyAuditLogs(
  opened: Database,
  report: (message: string) => void,
): Promise<string> {
  const accounts = await listAuditedAccounts(opened);
  let entryCount = 0;
  let saidAtMs = performance.now();
  for (const accountId of accounts) {
    const verified = await verifyAuditChain(opened, accountId, (done, all) => {
      if (performance.now() - saidAtMs < PROGRESS_INTERVAL_MS) return;
      saidAtMs = performance.now();
      console.error(`       account ${accountId}: ${done} of ${all} entries`);
    });
    entryCount += verified.entryCount;
    for (const { message } of verified.findings) report(`account ${accountId}: ${message}`);
  }
  return `${accounts.length} accounts, ${entryCount} entries`;
}

async function verifyCreditPools(
  opened: Database,
  report: (message: string) => void,
): Promise<string> {
  for (const { accountId, kind, grantId, kept, recomputed } of await listCreditDifferences(opened))
    report(
      `account ${accountId}, ${kind}, grant ${grantId}: ${kept} kept, ${recomputed} by the ledger`,
    );
  return `${await countCreditGrants(opened)} grants made again from their moves`;
}
