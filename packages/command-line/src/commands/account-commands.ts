/** `sluice audit …` and `sluice billing …`: changes in an account, and its next charges. */
import { type ApiClient, resultOf } from '@sluice/client';
import { moneyText, type Money } from '@sluice/console/sentences/money-text';
import { ACTOR_TYPES, actorText } from '@sluice/console/sentences/audit-text';
import { Option, type Command } from 'commander';
import { positiveInteger } from '../input/arguments.ts';
import { givenMembers } from '../input/given-members.ts';
import { noteMore, writeFields, writeRows } from '../output/result.ts';
import type { Terminal } from '../output/terminal.ts';

export interface AccountContext {
  readonly program: Command;
  readonly terminal: () => Terminal;
  /** The API, called with `--token`. */
  readonly api: () => ApiClient;
  /** `--account`, as a parameter of a path. */
  readonly ofAccount: () => { readonly account_id: number };
}

const ACTIONS = ['created', 'updated', 'deleted'] as const;

interface AuditOptions {
  readonly limit: number;
  readonly actor?: keyof typeof ACTOR_TYPES;
  readonly credential?: number;
  readonly session?: number;
  readonly action?: (typeof ACTIONS)[number];
  readonly objectType?: string;
}

export function addAuditCommands({ program, terminal, api, ofAccount }: AccountContext): void {
  const audit = program.command('audit').description('changes in an account, with their actors');
  audit
    .command('list')
    .addOption(new Option('--actor <type>', 'only by these').choices(Object.keys(ACTOR_TYPES)))
    .option('--credential <id>', 'only by this key', positiveInteger)
    .option('--session <id>', 'only in this session of the console', positiveInteger)
    .addOption(new Option('--action <action>', 'only these').choices(ACTIONS))
    .option('--object-type <type>', 'only of these, like reporting_webhook')
    .option('--limit <count>', 'rows, at most 100', positiveInteger, 20)
    .description('newest first')
    .action(async ({ limit, actor, credential, session, action, objectType }: AuditOptions) => {
      const query = givenMembers({
        limit,
        actor_type: actor,
        credential_id: credential,
        session_id: session,
        action,
        object_type: objectType,
      });
      const { audit_logs: entries, meta } = await resultOf(
        api().GET('/v1/accounts/{account_id}/audit_logs', { params: { path: ofAccount(), query } }),
      );
      const output = terminal();
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
      noteMore(output, meta.next_cursor, 'narrow it by an option, or raise --limit');
    });
  audit
    .command('show')
    .argument('<id>', 'of the entry', positiveInteger)
    .description('one entry, with each value before and after')
    .action(async (id: number) => {
      const { audit_log: entry } = await resultOf(
        api().GET('/v1/accounts/{account_id}/audit_log/{audit_log_id}', {
          params: { path: { ...ofAccount(), audit_log_id: id } },
        }),
      );
      writeFields(terminal(), entry);
    });
}

export function addBillingCommands({ program, terminal, api, ofAccount }: AccountContext): void {
  const billing = program
    .command('billing')
    .description('plan, usage, credits and purchases of an account');
  billing
    .command('show')
    .description('plan, next invoice and usage')
    .action(async () => {
      const [{ billing: info }, { profile }] = await Promise.all([
        resultOf(
          api().GET('/v1/accounts/{account_id}/billing/info', { params: { path: ofAccount() } }),
        ),
        resultOf(
          api().GET('/v1/accounts/{account_id}/billing/usage_profile', {
            params: { path: ofAccount() },
          }),
        ),
      ]);
      const output = terminal();
      const shown = { billing: info, usage: profile };
      writeFields(output, isDocument(output) ? shown : withMoney(shown));
    });
  billing
    .command('credits')
    .description('remaining credits with their expiry')
    .action(async () => {
      const { balances } = await resultOf(
        api().GET('/v1/accounts/{account_id}/billing/credits/balance', {
          params: { path: ofAccount() },
        }),
      );
      writeRows(terminal(), balances, ['credit_type', 'total_available', 'pools'], 'no credits');
    });
  billing
    .command('purchases')
    .option('--limit <count>', 'rows, at most 100', positiveInteger, 20)
    .description('newest first, with how each stands')
    .action(async ({ limit }: { limit: number }) => {
      const { runs, next } = await resultOf(
        api().GET('/v1/accounts/{account_id}/billing/runs', {
          params: { path: ofAccount(), query: { limit } },
        }),
      );
      const output = terminal();
      writeRows(
        output,
        runs,
        ['run_id', 'kind', 'status', 'created_at', 'reason'],
        'no purchase yet',
      );
      noteMore(output, next, 'raise --limit, or see the console');
    });
  billing
    .command('purchase')
    .argument('<run-id>', 'of the purchase')
    .description('one purchase with its steps')
    .action(async (runId: string) => {
      const purchase = api().GET('/v1/accounts/{account_id}/billing/runs/{run_id}', {
        params: { path: { ...ofAccount(), run_id: runId } },
      });
      writeFields(terminal(), await resultOf(purchase));
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
