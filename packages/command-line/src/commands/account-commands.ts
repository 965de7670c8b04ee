/** `sluice audit …` and `sluice billing …`: changes in an account, and its next charges. */
import { Option, type Command } from 'commander';
import { moneyText, type Money } from '@sluice/console/sentences/money-text';
import { ACTOR_TYPES, actorText, type AuditEntry } from '@sluice/console/sentences/audit-text';
import type { ApiClient } from '../connection/api-client.ts';
import { positiveInteger } from '../input/arguments.ts';
import { writeFields, writeRows, type Row } from '../output/result.ts';
import type { Terminal } from '../output/terminal.ts';

export interface AccountContext {
  readonly program: Command;
  readonly terminal: () => Terminal;
  /** The API, called with `--token`. */
  readonly api: () => ApiClient;
  /** Path below the account of `--account`, with `rest` at its end. */
  readonly path: (rest: string) => string;
}

interface AuditOptions {
  readonly limit: number;
  readonly actor?: string;
  readonly credential?: number;
  readonly session?: number;
  readonly action?: string;
  readonly objectType?: string;
}

export function addAuditCommands({ program, terminal, api, path }: AccountContext): void {
  const audit = program.command('audit').description('changes in an account, with their actors');
  audit
    .command('list')
    .addOption(new Option('--actor <type>', 'only by these').choices(Object.keys(ACTOR_TYPES)))
    .option('--credential <id>', 'only by this key', positiveInteger)
    .option('--session <id>', 'only in this session of the console', positiveInteger)
    .addOption(
      new Option('--action <action>', 'only these').choices(['created', 'updated', 'deleted']),
    )
    .option('--object-type <type>', 'only of these, like reporting_webhook')
    .option('--limit <count>', 'rows, at most 100', positiveInteger, 20)
    .description('newest first')
    .action(async ({ limit, actor, credential, session, action, objectType }: AuditOptions) => {
      const query = new URLSearchParams({ limit: String(limit) });
      if (actor !== undefined) query.set('actor_type', actor);
      if (credential !== undefined) query.set('credential_id', String(credential));
      if (session !== undefined) query.set('session_id', String(session));
      if (action !== undefined) query.set('action', action);
      if (objectType !== undefined) query.set('object_type', objectType);
      const { audit_logs: found } = await api().request(
        'GET',
        path(`/audit_logs?${query.toString()}`),
      );
      const output = terminal();
      const entries = found as unknown as AuditEntry[];
      writeRows(
        output,
        isDocument(output)
          ? entries
          : entries.map((entry) => ({
              ...entry,
              who: actorText(entry.actor),
              object: `${entry.object_type} ${entry.object_name ?? entry.object_id}`,
            })),
        ['id', 'occurred_at', 'who', 'action', 'object', 'changed_attributes'],
        'no entry of the audit log fits',
      );
    });
  audit
    .command('show')
    .argument('<id>', 'of the entry', positiveInteger)
    .description('one entry, with each value before and after')
    .action(async (id: number) => {
      const { audit_log: entry } = await api().request('GET', path(`/audit_log/${id}`));
      writeFields(terminal(), entry as object);
    });
}

export function addBillingCommands({ program, terminal, api, path }: AccountContext): void {
  const billing = program
    .command('billing')
    .description('plan, usage, credits and purchases of an account');
  billing
    .command('show')
    .description('plan, next invoice and usage')
    .action(async () => {
      const [{ billing: info }, { profile }] = await Promise.all([
        api().request('GET', path('/billing/info')),
        api().request('GET', path('/billing/usage_profile')),
      ]);
      const output = terminal();
      const shown = { billing: info, usage: profile };
      writeFields(output, isDocument(output) ? shown : withMoney(shown));
    });
  billing
    .command('credits')
    .description('remaining credits with their expiry')
    .action(async () => {
      const { balances } = await api().request('GET', path('/billing/credits/balance'));
      writeRows(
        terminal(),
        balances as Row[],
        ['credit_type', 'total_available', 'pools'],
        'no credits',
      );
    });
  billing
    .command('purchases')
    .option('--limit <count>', 'rows, at most 100', positiveInteger, 20)
    .description('newest first, with how each stands')
    .action(async ({ limit }: { limit: number }) => {
      const { runs } = await api().request('GET', path(`/billing/runs?limit=${limit}`));
      writeRows(
        terminal(),
        runs as Row[],
        ['run_id', 'kind', 'status', 'created_at', 'reason'],
        'no purchase yet',
      );
    });
  billing
    .command('purchase')
    .argument('<run-id>', 'of the purchase')
    .description('one purchase with its steps')
    .action(async (runId: string) => {
      writeFields(
        terminal(),
        await api().request('GET', path(`/billing/runs/${encodeURIComponent(runId)}`)),
      );
    });
}

const isDocument = ({ format }: Terminal): boolean => format === 'json' || format === 'yaml';

/** With `$1,000.00` in place of `{"amount": 100000, "currency": "usd"}`, at any depth. */
function withMoney(value: unknown): object {
  const shown = (item: unknown): unknown => {
    if (Array.isArray(item)) return item.map(shown);
    if (typeof item !== 'object' || item === null) return item;
    if (isMoney(item)) return moneyText(item);
    return Object.fromEntries(Object.entries(item).map(([name, each]) => [name, shown(each)]));
  };
  return shown(value) as object;
}

function isMoney(value: object): value is Money {
  const { amount, currency, ...more } = value as Partial<Money>;
  return (
    typeof amount === 'number' && typeof currency === 'string' && Object.keys(more).length === 0
  );
}
