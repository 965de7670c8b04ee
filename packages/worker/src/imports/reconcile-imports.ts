/**
 * Fetches files of imports, and runs imports, some at a time; any worker may claim them. Before: `reconcile-loops.ts`.
 * After: `run-import.ts`.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import { fetchFile } from '../http/fetch-file.ts';
import { FetchPlaces } from './fetch-places.ts';
import { ImportTurns } from './import-turns.ts';
import { endUnfinishedImports, runNextImport, type RunImportDeps } from './run-import.ts';
import type { ReconcileLoop } from '../process/reconcile-loops.ts';
import { createVettedConnector } from '@sluice/platform/outgoing/vetted-connection';
import type { importSettings } from '@sluice/platform/settings/config';
import type { z } from 'zod';
import type { WebhookOptions } from '../process/webhook-settings.ts';

export interface ImportReconcileLoopsDeps extends Omit<RunImportDeps, 'fetchFile' | 'pause'> {
  readonly intervalMs: number;
  /** How files are reached: as webhooks are. */
  readonly outgoing: Pick<WebhookOptions, 'allowPrivateAddresses' | 'allowedNetworks' | 'proxy'>;
}

/** A file may take hours to come, and its fetch takes 3 MB and next to no processor time. */
const FETCHES_AT_A_TIME = 16;
/** Of files that are here. Each takes a connection to Postgres, and most of a core. */
const IMPORTS_AT_A_TIME = 4;

/** Size limits of files, from the settings. */
export const importBoundsOf = (
  settings: z.infer<typeof importSettings> & { readonly WORKSPACE_SHARE_PERCENT: number },
): Pick<RunImportDeps, 'sizeBytesMax' | 'unfinishedSizeBytesMax' | 'storage'> => ({
  sizeBytesMax: settings.IMPORT_SIZE_BYTES_MAX,
  unfinishedSizeBytesMax: settings.IMPORT_UNFINISHED_SIZE_BYTES_MAX,
  storage: {
    sizeBytesMax: settings.IMPORT_STORAGE_SIZE_BYTES_MAX,
    sharePercent: settings.WORKSPACE_SHARE_PERCENT,
  },
});

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
  };
  const loops = (name: string, count: number, each: Partial<RunImportDeps>): ReconcileLoop[] =>
    Array.from({ length: count }, (_, index) => ({
      name: `${name} ${index + 1}`,
      kind: 'imports',
      intervalMs,
      async run() {
        while (!stopping.aborted && (await runNextImport({ ...running, ...each })));
      },
    }));
  const fetchPlaces = new FetchPlaces(FETCHES_AT_A_TIME);
  return [
    ...loops('fetch imports', FETCHES_AT_A_TIME, {
      takes: 'remote',
      turns: new ImportTurns(),
      fetchPlaces,
    }),
    // One for all: each of the others would do it once a second.
    {
      name: 'end unfinished imports',
      kind: 'imports',
      intervalMs,
      run: () => endUnfinishedImports(deps),
    },
    ...loops('run imports', IMPORTS_AT_A_TIME, { takes: 'here', turns: new ImportTurns() }),
  ];
}
