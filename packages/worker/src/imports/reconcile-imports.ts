/**
 * Runs imports, some at a time; any worker may claim them. Before: `reconcile-loops.ts`. After: `run-import.ts`.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import { fetchFile } from '../http/fetch-file.ts';
import { ImportTurns } from './import-turns.ts';
import { runNextImport, type RunImportDeps } from './run-import.ts';
import type { ReconcileLoop } from '../process/reconcile-loops.ts';
import { createVettedConnector } from '@sluice/platform/outgoing/vetted-connection';
import type { WebhookOptions } from '../process/webhook-settings.ts';

export interface ImportReconcileLoopsDeps extends Omit<RunImportDeps, 'fetchFile' | 'pause'> {
  readonly intervalMs: number;
  /** How files are reached: as webhooks are. */
  readonly outgoing: Pick<WebhookOptions, 'allowPrivateAddresses' | 'allowedNetworks' | 'proxy'>;
}

/** A file may take hours to come; with one at a time it would keep the files of all other workspaces waiting. */
const IMPORTS_AT_A_TIME = 4;
/** Of files that are here: while four slow servers have all of the others, a file that was sent to us goes on. */
const STORED_AT_A_TIME = 1;

/** They end with `stopping`. */
export function createImportReconcileLoops(deps: ImportReconcileLoopsDeps): ReconcileLoop[] {
  const { stopping, intervalMs, monotonicNow } = deps;
  const { allowPrivateAddresses: allowPrivate, allowedNetworks, proxy } = deps.outgoing;
  const connector = createVettedConnector({ allowPrivate, allowedNetworks }, undefined, proxy);
  const running: RunImportDeps = {
    ...deps,
    fetchFile: (address, tellEncoding, unwanted) =>
      fetchFile(connector, address, {
        signal: AbortSignal.any([stopping, unwanted]),
        tellEncoding,
        monotonicNow,
      }),
    pause: (durationMs, signal) => sleep(durationMs, undefined, { signal }),
    turns: new ImportTurns(),
  };
  return Array.from({ length: IMPORTS_AT_A_TIME + STORED_AT_A_TIME }, (_, index) => ({
    name: `run imports ${index + 1}`,
    kind: 'imports',
    intervalMs,
    async run() {
      const takesStored = index >= IMPORTS_AT_A_TIME;
      while (!stopping.aborted && (await runNextImport({ ...running, takesStored })));
    },
  }));
}
