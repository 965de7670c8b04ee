/** Exports of the audit log: the file is whole and right however often the work is cut short. */
import { createHash } from 'node:crypto';
import {
  appendExportPart,
  claimExport,
  completeExport,
  findAuditLogExport,
  findExportPart,
  orderAuditLogExport,
  type AuditLogExportKey,
} from '@sluice/database/audit/audit-log-exports';
import type { AuditLogFilter } from '@sluice/database/audit/audit-log-reads';
import type { Database } from '@sluice/database/connection/connection';
import { createTestDatabase } from '@sluice/database/testing/testing';
import type { ExportFormat } from '@sluice/domain/accounts/audit-export';
import { createLogger } from '@sluice/platform/process/logger';
import {
  EXPORT_TASKS,
  openTaskQueue,
  startTaskWorker,
} from '@sluice/platform/consumers/queue-tasks';
import { testRedisUrl, uniquePrefix } from '@sluice/platform/testing/testing';
import fc from 'fast-check';
import { sql } from 'kysely';
import { beforeAll, describe, expect, test, vi } from 'vitest';
import {
  exportAuditLogs,
  reconcileExports,
  type ExportAuditLogsDeps,
} from '../../../src/maintenance/export-audit-logs.ts';
import { insertAuditedAccount } from '../support/audit-log-rows.ts';

const ACCOUNT = 1;
const ENTRIES = 95;
const NOW_MS = Date.parse('2026-03-01T12:00:00Z');
const DAY_MS = 86_400_000;

let database: Database;
let url: string;
beforeAll(async () => {
  ({ database, url } = await createTestDatabase());
  await insertAuditedAccount(database, ACCOUNT, ENTRIES);
});

let exportCount = 0;
async function order(
  format: ExportFormat = 'ndjson',
  filter: AuditLogFilter = { objectType: 'account' },
): Promise<AuditLogExportKey> {
  const key = { accountId: ACCOUNT, exportId: `exp_${++exportCount}` };
  const origin = { actor: { type: 'service_account', serviceAccountId: 4 } } as const;
  const ordered = await orderAuditLogExport(database, { ...key, format, filter }, origin, NOW_MS);
  expect(ordered).toMatchObject({ status: 'pending', requestedByServiceAccountId: 4 });
  return key;
}

const deps = (changes: Partial<ExportAuditLogsDeps> = {}): ExportAuditLogsDeps => ({
  database,
  now: () => NOW_MS,
  leaseMs: 60_000,
  rowsPerPart: 10,
  isStopping: () => false,
  ...changes,
});

async function fileOf(key: AuditLogExportKey): Promise<string> {
  let text = '';
  for (let part = 0; ; part++) {
    const content = await findExportPart(database, key, part);
    if (!content) return text;
    text += content.toString();
  }
}

/** As when the worker that held it is dead for long enough. */
const endLease = (key: AuditLogExportKey) =>
  sql`update audit_log_exports set lease_until = now() - interval '1 second'
       where account_id = ${key.accountId} and export_id = ${key.exportId}`.execute(database);

const idsIn = (file: string): number[] =>
  file
    .trimEnd()
    .split('\n')
    .map((line) => (JSON.parse(line) as { id: number }).id);

describe('a file', () => {
  test('has every entry once and in order, its size and its digest', async () => {
    const key = await order();
    expect(await exportAuditLogs(deps(), key)).toBe('completed');
    const file = await fileOf(key);
    expect(idsIn(file)).toEqual(Array.from({ length: ENTRIES }, (_, index) => index + 1));
    expect(await findAuditLogExport(database, key)).toMatchObject({
      status: 'completed',
      rowCount: ENTRIES,
      sizeBytes: Buffer.byteLength(file),
      sha256: createHash('sha256').update(file).digest('hex'),
      completedAt: new Date(NOW_MS),
      expiresAt: new Date(NOW_MS + 7 * DAY_MS),
    });
  });

  test('as CSV has one line of names, and no cell that is a formula', async () => {
    const key = await order('csv');
    await exportAuditLogs(deps(), key);
    const lines = (await fileOf(key)).trimEnd().split('\r\n');
    expect(lines).toHaveLength(ENTRIES + 1);
    expect(lines.filter((line) => line.startsWith('id,occurred_at,'))).toHaveLength(1);
    expect(lines[1]).toContain(",'=name 1,");
    expect(lines.join('\n')).not.toContain(',=');
  });

  test('has the entries that the filter finds, and is complete also without entries', async () => {
    const some = await order('ndjson', { userId: 2, ipAddrPrefix: '10.0.0.3' });
    await exportAuditLogs(deps(), some);
    const expected = Array.from({ length: ENTRIES }, (_, index) => index + 1).filter(
      (n) => n % 3 === 2 && n % 7 === 3,
    );
    expect(idsIn(await fileOf(some))).toEqual(expected);

    const nothing = await order('csv', { userId: 77 });
    expect(await exportAuditLogs(deps(), nothing)).toBe('completed');
    expect(await fileOf(nothing)).toMatch(/^id,[a-z_,]+\r\n$/);
    expect(await findAuditLogExport(database, nothing)).toMatchObject({ rowCount: 0 });
  });

  test('ends with its own order: later entries are not in it', async () => {
    const key = await order('ndjson', {});
    const { untilId } = (await findAuditLogExport(database, key))!;
    await order('ndjson', {}).then((later) => exportAuditLogs(deps(), later));
    await exportAuditLogs(deps(), key);
    const ids = idsIn(await fileOf(key));
    expect(ids.at(-1)).toBe(untilId);
    expect(ids).toHaveLength(untilId);
  });
});

describe('work that is cut short', () => {
  test('anywhere, any number of times, by a crash or a stop, ends in the same file', async () => {
    const whole = await order();
    await exportAuditLogs(deps(), whole);
    const expected = await fileOf(whole);
    const cuts = fc.array(
      fc.record({ afterParts: fc.nat(4), kind: fc.constantFrom('crash', 'stop') }),
      { maxLength: 4 },
    );
    await fc.assert(
      fc.asyncProperty(cuts, fc.integer({ min: 1, max: 40 }), async (cutsMade, rowsPerPart) => {
        const key = await order();
        for (const { afterParts, kind } of cutsMade) {
          let left = afterParts;
          const isCut = () => left-- <= 0;
          const crash = () => {
            if (isCut()) throw new Error('killed');
            return false;
          };
          const attempt = exportAuditLogs(
            deps({ rowsPerPart, isStopping: kind === 'stop' ? isCut : crash }),
            key,
          );
          if (kind === 'crash') {
            await attempt.catch((error: Error) => expect(error.message).toBe('killed'));
            await endLease(key);
          } else expect(['stopped', 'completed', 'finished_before']).toContain(await attempt);
        }
        expect(['completed', 'finished_before']).toContain(
          await exportAuditLogs(deps({ rowsPerPart }), key),
        );
        expect(await fileOf(key)).toBe(expected);
        expect(await findAuditLogExport(database, key)).toMatchObject({ rowCount: ENTRIES });
      }),
      { numRuns: 15 },
    );
  }, 240_000);

  test('is not taken up while somebody else is at it', async () => {
    const key = await order();
    expect((await claimExport(database, key, 60_000)).outcome).toBe('claimed');
    expect(await exportAuditLogs(deps(), key)).toBe('held');
    await endLease(key);
    expect(await exportAuditLogs(deps(), key)).toBe('completed');
    expect(await exportAuditLogs(deps(), key)).toBe('finished_before');
  });

  test('and taken up by another: the first, alive after all, cannot write any more', async () => {
    const key = await order();
    const claim = await claimExport(database, key, 60_000);
    if (claim.outcome !== 'claimed') throw new Error(claim.outcome);
    const part = { content: Buffer.from('late\n'), rowCount: 1, afterId: 1 };
    await endLease(key);
    expect(await exportAuditLogs(deps(), key)).toBe('completed');
    const file = await fileOf(key);
    expect(await appendExportPart(database, key, claim.fencing, part, 60_000)).toBe(false);
    const end = { sha256: Buffer.alloc(32), expiresAtMs: 0, nowMs: 0 };
    expect(await completeExport(database, key, claim.fencing, end)).toBe(false);
    expect(await fileOf(key)).toBe(file);
    expect(await findAuditLogExport(database, key)).toMatchObject({ rowCount: ENTRIES });
  });
});

test('a fourth unfinished export of an account is refused, also of many at once, and leaves no entry', async () => {
  const accountId = 2;
  await insertAuditedAccount(database, accountId, 1);
  const origin = { actor: { type: 'user', userId: 1 } } as const;
  const ordered = await Promise.all(
    Array.from({ length: 8 }, (_, index) =>
      orderAuditLogExport(
        database,
        { accountId, exportId: `many_${index}`, format: 'csv', filter: {} },
        origin,
        NOW_MS,
      ),
    ),
  );
  expect(ordered.filter((each) => each !== undefined)).toHaveLength(3);
  const { rows } = await sql`
    select 1 from audit_logs where account_id = ${accountId} and object_type = 'audit_log_export'`.execute(
    database,
  );
  expect(rows).toHaveLength(3);
});

describe('the reconcile loop', () => {
  const reconcile = async (nowMs = NOW_MS): Promise<AuditLogExportKey[]> => {
    const woken: AuditLogExportKey[] = [];
    await reconcileExports({
      database,
      wake: async (key) => void (key.accountId === ACCOUNT && woken.push(key)),
      now: () => nowMs,
    });
    return woken;
  };

  test('wakes only exports without a worker', async () => {
    const key = await order();
    expect(await reconcile()).toEqual([key]);
    await claimExport(database, key, 60_000);
    expect(await reconcile()).toEqual([]);
    await endLease(key);
    expect(await reconcile()).toEqual([key]);
    await exportAuditLogs(deps(), key);
    expect(await reconcile()).toEqual([]);
  });

  test('gives up an export without progress in five attempts, but never one with progress', async () => {
    const key = await order();
    for (let attempt = 0; attempt < 5; attempt++) {
      expect(await reconcile()).toEqual([key]);
      await claimExport(database, key, 60_000);
      await endLease(key);
    }
    expect(await reconcile()).toEqual([]);
    expect(await findAuditLogExport(database, key)).toMatchObject({ status: 'failed' });

    const slow = await order();
    for (let attempt = 0; attempt < 7; attempt++) {
      let left = 1;
      const isStopping = () => left-- <= 0;
      await exportAuditLogs(deps({ rowsPerPart: 5, isStopping }), slow);
      expect(await reconcile()).toEqual([slow]);
    }
    expect(await exportAuditLogs(deps(), slow)).toBe('completed');
  });

  test('clears files away when their time has come, and no earlier', async () => {
    const key = await order();
    await exportAuditLogs(deps(), key);
    await reconcile(NOW_MS + 7 * DAY_MS - 1);
    expect(await fileOf(key)).not.toBe('');
    await reconcile(NOW_MS + 7 * DAY_MS);
    expect(await fileOf(key)).toBe('');
    expect(await findAuditLogExport(database, key)).toBeUndefined();
  });
});

describe.each(['postgres', 'redis'] as const)('woken by the queue on %s', (kind) => {
  test('an export is written, once, though it is woken often', async () => {
    const broker = {
      databaseUrl: url,
      redisUrl: kind === 'redis' ? testRedisUrl() : undefined,
      prefix: uniquePrefix(),
      logger: createLogger('test', 'silent'),
    };
    const queue = await openTaskQueue(broker, EXPORT_TASKS);
    const outcomes: string[] = [];
    let hasFailed = false;
    const worker = startTaskWorker(broker, EXPORT_TASKS, 2, async (key) => {
      if (!hasFailed) {
        hasFailed = true;
        throw new Error('the database was away');
      }
      outcomes.push(await exportAuditLogs(deps({ rowsPerPart: 2 }), key));
    });
    try {
      const key = await order();
      await queue.wake(key);
      await vi.waitFor(() => expect(hasFailed).toBe(true), 60_000);
      // The task that failed is forgotten; a reconcile loop wakes it again.
      await vi.waitFor(async () => {
        await Promise.all([1, 2, 3].map(() => queue.wake(key)));
        expect(outcomes).toContain('completed');
      }, 60_000);
      expect(outcomes.filter((outcome) => outcome === 'completed')).toHaveLength(1);
      expect(idsIn(await fileOf(key))).toHaveLength(ENTRIES);
    } finally {
      await worker.close();
      await queue.close();
    }
  }, 180_000);
});
