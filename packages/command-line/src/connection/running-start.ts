/**
 * The `npm start` that runs from this checkout: its addresses, and the settings of its database. Read from its data
 * directory, so that commands beside it need no settings at all.
 */
import { readFileSync } from 'node:fs';
import { join, resolve } from 'node:path';

export interface RunningStart {
  readonly intakeUrl: string;
  readonly apiUrl: string;
  readonly workerUrl: string;
  /** Settings for scripts that read Postgres directly; values that only their owner may read. */
  readonly settings: Readonly<Record<string, string>>;
}

/**
 * @param root - the checkout.
 * @param probe - throws if there is no process of that id, as `process.kill(pid, 0)` does.
 * @param environment - `SLUICE_DIRECTORY` is the folder of its data; `.sluice` unless set.
 * @returns undefined if no `npm start` runs, or only one of a version without this file.
 */
export function findRunningStart(
  root: string,
  environment: Readonly<Record<string, string | undefined>>,
  probe: (pid: number) => void,
): RunningStart | undefined {
  const directory = resolve(root, environment['SLUICE_DIRECTORY'] || '.sluice');
  const holder = parseHolder(readIfThere(join(directory, 'held-by.json')));
  if (holder === undefined || !runs(holder.pid, probe)) return undefined;
  const { intake, api, worker } = holder.urls;
  return {
    intakeUrl: intake,
    apiUrl: api,
    workerUrl: worker,
    settings: { ...keptSettings(directory, holder.kept), ...holder.settings },
  };
}

interface Holder {
  readonly pid: number;
  readonly urls: Readonly<Record<'intake' | 'api' | 'worker', string>>;
  readonly settings: Readonly<Record<string, string>>;
  /** Names of settings that are in files beside. */
  readonly kept: readonly string[];
}

function parseHolder(text: string | undefined): Holder | undefined {
  if (text === undefined) return undefined;
  try {
    const { pid, urls, settings, kept } = JSON.parse(text) as Partial<Holder>;
    return typeof pid === 'number' && urls && settings && kept
      ? { pid, urls, settings, kept }
      : undefined;
  } catch {
    return undefined;
  }
}

/** Of the embedded Postgres, and the encryption keys. If `npm start` was given others, the operator has them. */
function keptSettings(directory: string, kept: readonly string[]): Record<string, string> {
  const [password, port, keys] = ['postgres-password', 'postgres-port', 'sealing-keys'].map(
    (name) => readIfThere(join(directory, name))?.trim(),
  );
  const url = `postgres://sluice:${password}@127.0.0.1:${port}/sluice`;
  return {
    ...(kept.includes('DATABASE_URL') && password && port && { DATABASE_URL: url }),
    ...(kept.includes('SEALING_KEYS') && keys && { SEALING_KEYS: keys }),
  };
}

/** Undefined if it is not there, or another user's. */
function readIfThere(file: string): string | undefined {
  try {
    return readFileSync(file, 'utf8');
  } catch {
    return undefined;
  }
}

function runs(pid: number, probe: (pid: number) => void): boolean {
  try {
    probe(pid);
    return true;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'EPERM';
  }
}
