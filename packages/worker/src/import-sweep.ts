/** Has imports run, one after the other, by whichever worker claims them. Before: `sweeps.ts`. After: `run-import.ts`. */
import { setTimeout as sleep } from 'node:timers/promises';
import { fetchFile } from './fetch-file.ts';
import { runNextImport, type RunImportDeps } from './run-import.ts';
import type { Sweep } from './sweeps.ts';
import { createVettedConnector } from './vetted-connection.ts';

export interface ImportSweepDeps extends Omit<RunImportDeps, 'fetchFile' | 'pause'> {
  readonly intervalMs: number;
  readonly allowPrivateAddresses: boolean;
}

/** Ends with `stopping`. */
export function createImportSweep(deps: ImportSweepDeps): Sweep {
  const connector = createVettedConnector({ allowPrivate: deps.allowPrivateAddresses });
  const running: RunImportDeps = {
    ...deps,
    fetchFile: (address) => fetchFile(connector, address),
    pause: (durationMs, signal) => sleep(durationMs, undefined, { signal }),
  };
  return {
    name: 'run imports',
    kind: 'imports',
    intervalMs: deps.intervalMs,
    async run() {
      while (!deps.stopping.aborted && (await runNextImport(running)));
    },
  };
}
