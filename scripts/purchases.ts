/**
 * `sluice purchases list|release|fail`: purchases of `DATABASE_URL` that were in manual review. A program of the
 * operator's and not of the API: the person who decides has looked at the payment provider's ledgers, of all accounts.
 */
import type { Database } from '@sluice/database/connection/connection';
import {
  listPurchasesInReview,
  releasePurchaseFromReview,
} from '@sluice/database/billing/purchases-in-review';
import { printable, printableJson } from '@sluice/domain/values/printable';
import { failPurchaseInReview } from '@sluice/worker/settlement/end-purchase-workflow';
import { actOnDatabase, databaseSettings, readWords } from './act-on-database.ts';

/** If more than these wait, they have one cause: mend it, release some, and list again. */
const LISTED_MAX = 1_000;
const USAGE = 'usage: sluice purchases list, or sluice purchases release|fail <run-id>';

const { values, positionals } = readWords(USAGE, {
  options: { json: { type: 'boolean', default: false } },
  allowPositionals: true,
});
const [action, runId] = positionals;
const isOfOne = action === 'release' || action === 'fail';
if (action !== 'list' && (!isOfOne || runId === undefined)) {
  console.error(USAGE);
  process.exit(2);
}
await actOnDatabase('purchases', databaseSettings, (database) => {
  if (!isOfOne || runId === undefined) return list(database);
  return action === 'fail' ? fail(database, runId) : release(database, runId);
});

async function list(database: Database): Promise<void> {
  const workflows = await listPurchasesInReview(database, LISTED_MAX);
  if (values.json) return console.log(printableJson(workflows));
  if (workflows.length === 0) console.log('nothing');
  for (const { accountId, runId: id, kind, status, createdAt, reviewReason } of workflows)
    console.log(
      `${id}  account ${accountId}  ${kind}  ${status}  ${createdAt.toISOString()}  ${printable(reviewReason)}`,
    );
  if (workflows.length === LISTED_MAX) console.error(`the oldest ${LISTED_MAX} are shown`);
}

async function release(database: Database, id: string): Promise<void> {
  const origin = { actor: { type: 'system' } } as const;
  const released = await releasePurchaseFromReview(database, id, origin, Date.now());
  if (!released) throw new Error(`no purchase ${id} is in manual review: sluice purchases list`);
  if (values.json) return console.log(printableJson(released));
  console.log(
    released.status === 'pending'
      ? `${id} goes on: a worker takes it up within a second`
      : `${id} had ended (${released.status}) and is looked at`,
  );
}

async function fail(database: Database, id: string): Promise<void> {
  const failed = await failPurchaseInReview(database, id, Date.now());
  if (!failed)
    throw new Error(`no pending purchase ${id} is in manual review: sluice purchases list`);
  if (values.json) return console.log(printableJson(failed));
  console.log(`${id} has failed: its account may buy again`);
}
