/**
 * `npm run verify`: compares the ledgers of `DATABASE_URL` with their records, and with the payment provider's ledgers
 * (`STRIPE_SECRET_KEY`, or the simulator at `SIMULATOR_URL`). It prints differences. It ends with 1 if there is one,
 * and with 2 if it could not look. Reads only, and may run while everything is in use.
 *
 * With `--json` each check is a line of JSON, with its differences in it.
 *
 * A further check is a line in `CHECKS`.
 */
import { openPaymentProvider } from '@sluice/billing-vendor/open-payment-provider';
import { billingSettings } from '@sluice/billing-vendor/settings';
import type {
  PaymentProvider,
  ProviderInvoice,
  ProviderPage,
  ProviderResult,
} from '@sluice/billing-vendor/port/payment-provider';
import type { Database } from '@sluice/database/connection/connection';
import { countCreditGrants, listCreditDifferences } from '@sluice/database/verify/verify-credits';
import { listAuditedAccounts, verifyAuditChain } from '@sluice/database/verify/verify-audit-chains';
import { listPeopleCounts } from '@sluice/database/verify/verify-people';
import {
  hasProviderCustomers,
  listBookedPurchases,
  listBookedSubscribers,
} from '@sluice/database/verify/verify-purchases';
import {
  countUsage,
  listUsageCreditDifferences,
  listUsageDayDifferences,
} from '@sluice/database/verify/verify-usage';
import {
  comparePurchases,
  compareSubscriptions,
  type BilledInvoice,
} from '@sluice/domain/billing/compare-purchases';
import { compareProrations, listSubscriptionsWithExcess } from '@sluice/domain/billing/unused-time';
import { printable, printableJson } from '@sluice/domain/values/printable';
import { parseSettings } from '@sluice/platform/settings/config';
import { actOnDatabase, databaseSettings, readEnvironment, readWords } from './act-on-database.ts';
import { startProgress } from './progress.mjs';

interface Check {
  readonly name: string;
  /** Returns a summary of the check; `report` takes each difference. */
  readonly run: (
    database: Database,
    report: (message: string) => void,
    onProgress: (done: number) => void,
  ) => Promise<string>;
  /** Unit of the counts of `onProgress`. */
  readonly unit: string;
}

const CHECKS: readonly Check[] = [
  { name: 'audit log', unit: 'entries', run: verifyAuditLogs },
  { name: 'credit pools', unit: 'grants', run: verifyCreditPools },
  { name: 'usage', unit: 'sums', run: verifyUsage },
  { name: 'number of people', unit: 'workspaces', run: verifyPeople },
  { name: 'payment provider', unit: 'answers', run: verifyProvider },
];

type Reversed = Pick<BilledInvoice, 'taken' | 'returned'>;

const NOT_REVERSED: Reversed = { taken: 0, returned: 0 };
/** Of one check; further ones are only counted. */
const PRINTED_MAX = 100;

const { values } = readWords('usage: sluice verify [--json]', {
  options: { json: { type: 'boolean', default: false } },
});
await actOnDatabase('verify', databaseSettings, async (database) => {
  for (const { name, unit, run } of CHECKS) {
    let count = 0;
    const differences: string[] = [];
    const progress = startProgress(`verifying: ${name}`, unit, { silentMs: 2_000 });
    const onDifference = (message: string): void => {
      if (++count > PRINTED_MAX) return;
      progress.hide();
      if (values.json) differences.push(message);
      else console.error(printable(`${name}: ${message}`));
    };
    const summary = await run(database, onDifference, (done) => progress.report(done)).finally(() =>
      progress.end(),
    );
    if (count > 0) process.exitCode = 1;
    if (values.json) {
      console.log(printableJson({ check: name, ok: count === 0, summary, count, differences }));
      continue;
    }
    if (count > PRINTED_MAX) console.error(`${name}: ${count - PRINTED_MAX} more`);
    console.log(`${count === 0 ? 'ok    ' : 'FAILED'} ${name}: ${summary}`);
  }
});

async function verifyAuditLogs(
  opened: Database,
  report: (message: string) => void,
  onProgress: (done: number) => void,
): Promise<string> {
  const accounts = await listAuditedAccounts(opened);
  let entryCount = 0;
  for (const accountId of accounts) {
    const verified = await verifyAuditChain(opened, accountId, (done) =>
      onProgress(entryCount + done),
    );
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

async function verifyUsage(opened: Database, report: (message: string) => void): Promise<string> {
  const differences = [
    ...(await listUsageDayDifferences(opened)),
    ...(await listUsageCreditDifferences(opened)),
  ];
  for (const { accountId, of, kept, recomputed } of differences)
    report(
      `account ${accountId}, ${of}: ${kept ?? 'nothing'} kept, ${recomputed ?? 'nothing'} by the runs (runs, used, refunded)`,
    );
  const { runs, sums } = await countUsage(opened);
  return `${sums} sums of closed days made again from ${runs} runs, and the credits that they took`;
}

async function verifyPeople(opened: Database, report: (message: string) => void): Promise<string> {
  const counts = await listPeopleCounts(opened);
  for (const { environmentId, kept, counted } of counts)
    if (kept !== counted) report(`workspace ${environmentId}: ${kept} kept, ${counted} counted`);
  const all = counts.reduce((sum, { counted }) => sum + counted, 0);
  return `${all} people of ${counts.length} workspaces counted`;
}

async function verifyProvider(
  opened: Database,
  report: (message: string) => void,
  onProgress: (done: number) => void,
): Promise<string> {
  if (!(await hasProviderCustomers(opened))) return 'no account of ours is its customer';
  let answerCount = 0;
  const onAnswer = (): void => onProgress(++answerCount);
  const first = await compareWithProvider(opened, onAnswer);
  // Differences from work in progress between the two reads are gone when both are read again.
  const again = first.found.length === 0 ? first : await compareWithProvider(opened, onAnswer);
  for (const message of again.found) if (first.found.includes(message)) report(message);
  return again.summary;
}

async function compareWithProvider(
  opened: Database,
  onAnswer: () => void,
): Promise<{ readonly found: readonly string[]; readonly summary: string }> {
  const provider = telling(
    await openPaymentProvider(parseSettings(billingSettings, readEnvironment())),
    onAnswer,
  );
  const invoices = await readAll((after) => provider.listInvoices(after));
  const reversed = await readReversed(provider);
  const withReturned = invoices.map((each) => ({
    ...each,
    ...(reversed.get(each.invoiceId) ?? NOT_REVERSED),
  }));
  // They are listed newest first.
  const oldestFirst = withReturned.toReversed();
  const subscriptions = await readAll((after) => provider.listSubscriptions(after));
  const purchases = await listBookedPurchases(opened);
  const subscribers = await listBookedSubscribers(opened);
  return {
    found: [
      ...comparePurchases(purchases, withReturned),
      ...compareProrations(oldestFirst, await readTakenBack(provider, oldestFirst)),
      ...compareSubscriptions(
        subscribers,
        subscriptions.map((each) => ({
          ...each,
          priceIds: each.items.map((item) => item.priceId),
        })),
      ),
    ],
    summary: `${purchases.length} purchases, ${invoices.length} invoices and ${reversed.size} that were refunded or disputed, ${subscribers.length} subscribers and ${subscriptions.length} subscriptions`,
  };
}

/** The same payment provider, with a call of `onAnswer` after each answer. */
function telling(provider: PaymentProvider, onAnswer: () => void): PaymentProvider {
  type Call = (...input: unknown[]) => Promise<unknown>;
  const calls = Object.entries(provider as unknown as Record<string, Call>).map(
    ([name, call]): [string, Call] => [name, (...input) => call(...input).finally(onAnswer)],
  );
  return Object.fromEntries(calls) as unknown as PaymentProvider;
}

/** By invoice, of payments that were refunded or disputed. One whose refund failed or whose dispute was won is there too. */
async function readReversed(provider: PaymentProvider): Promise<ReadonlyMap<string, Reversed>> {
  const chargeIds = new Set([
    ...(await readAll((after) => provider.listReversedCharges('refund', after))),
    ...(await readAll((after) => provider.listReversedCharges('dispute', after))),
  ]);
  const reversed = new Map<string, Reversed>();
  for (const chargeId of chargeIds) {
    if (chargeId === null) continue;
    const payment = answerOf(await provider.readPayment('charge', chargeId));
    if (payment === null || payment.invoiceId === null) continue;
    const { invoiceId, taken, amountReturned } = payment;
    const before = reversed.get(invoiceId) ?? NOT_REVERSED;
    reversed.set(invoiceId, {
      taken: before.taken + taken.amount,
      returned: before.returned + amountReturned,
    });
  }
  return reversed;
}

/** By subscription, of the ones that gave back too much for unused time. */
async function readTakenBack(
  provider: PaymentProvider,
  invoices: readonly (ProviderInvoice & Reversed)[],
): Promise<ReadonlyMap<string, number>> {
  const takenBack = new Map<string, number>();
  for (const subscriptionId of listSubscriptionsWithExcess(invoices)) {
    const of = invoices.find(({ subscriptionLines: lines }) =>
      lines.some((line) => line.subscriptionId === subscriptionId),
    );
    const read = await provider.readCreditTakenBack(of?.customerId ?? '', subscriptionId);
    takenBack.set(subscriptionId, answerOf(read));
  }
  return takenBack;
}

async function readAll<Item>(
  list: (after: string | undefined) => Promise<ProviderResult<ProviderPage<Item>>>,
): Promise<Item[]> {
  const items: Item[] = [];
  let after: string | undefined;
  do {
    const page = answerOf(await list(after));
    items.push(...page.items);
    after = page.next;
  } while (after !== undefined);
  return items;
}

function answerOf<Value>(result: ProviderResult<Value>): Value {
  if (result.outcome === 'ok') return result.value;
  const reason = 'reason' in result ? result.reason : result.outcome;
  throw new Error(`the payment provider does not answer: ${reason}`);
}
