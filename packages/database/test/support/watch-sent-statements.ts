/**
 * Before every test file of a package that uses Postgres: a test fails if code of ours sends a statement about a
 * tenant's table without its tenant.
 *
 * It reads each text once a process. The statements of tests are their own matter, and so are the ones of services that
 * a test starts as processes.
 */
import { afterAll, afterEach } from 'vitest';
import type { SentStatementsWatch } from './sent-statements-watch.ts';

const KEY = Symbol.for('sluice.sentStatementsWatch');
const kept = globalThis as { [KEY]?: SentStatementsWatch };
// The files of a process share one: vitest loads modules of ours anew for each.
kept[KEY] ??= (await import('./sent-statements-watch.ts')).watchSentStatements();

const { takeFaults } = kept[KEY];
const failOnFaults = (): void => {
  const faults = takeFaults();
  if (faults.length > 0) throw new Error(faults.join('\n\n'));
};
afterEach(failOnFaults);
afterAll(failOnFaults);
