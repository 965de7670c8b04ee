/**
 * Fetches the file of an import from its URL, in stored pieces. A fetch that breaks off begins again at the start. A
 * fetch without capacity, or without a way through the egress proxy, waits and holds no storage meanwhile.
 *
 * Before: `run-import.ts`. After: `database/src/imports/import-chunks.ts`.
 */
import {
  appendImportChunk,
  clearImportChunks,
  hasImportStorage,
  waitForCapacity,
  type ImportStorage,
} from '@sluice/database/imports/import-chunks';
import { isOnlyWorkspace } from '@sluice/database/accounts/environments';
import type { Database } from '@sluice/database/connection/connection';
import type { ImportRow } from '@sluice/database/imports/imports';
import type { ImportStep } from '@sluice/database/imports/import-claims';
import { isKnownEncoding } from '@sluice/database/imports/file-encoding';
import { inChunks } from '@sluice/database/imports/in-chunks';
import {
  largerThanCapacity,
  largerThanStorage,
  waitsForCapacity,
  WAITS_FOR_STORAGE,
} from '@sluice/domain/imports/import-limits';
import { mostOf } from '@sluice/domain/values/fair-share';
import type { Logger } from '@sluice/platform/process/logger';
import { FetchFault, SILENCE_TIMEOUT_MS } from '../http/fetch-file.ts';
import { ProxyFailure } from '@sluice/platform/outgoing/proxy-tunnel';

export interface FetchImportDeps {
  readonly database: Database;
  /**
   * Passes on the encoding that the server declares, if it does, before the first piece. Aborted: the file is not
   * wanted.
   */
  readonly fetchFile: (
    address: string,
    tellEncoding: (encoding: string) => void,
    unwanted: AbortSignal,
  ) => AsyncIterable<Buffer>;
  readonly pause: (durationMs: number, signal: AbortSignal) => Promise<unknown>;
  readonly leaseMs: number;
  readonly now: () => number;
  readonly logger: Pick<Logger, 'warn'>;
  readonly sizeBytesMax: number;
  /** Of the files of all unfinished imports of a workspace together. */
  readonly unfinishedSizeBytesMax: number;
  /** Of the files of the imports of all workspaces. */
  readonly storage: ImportStorage;
  /** Aborted: the step under way is the last. */
  readonly stopping: AbortSignal;
}

/** Writes how far the import is; false if this worker no longer has it. */
export type AdvanceImport = (
  step: Omit<ImportStep, 'leaseMs' | 'nowMs'> & { readonly leaseMs?: number },
) => Promise<boolean>;

/** How often it is checked whether the file is still wanted. */
const WANTED_LOOK_MS = 2_000;
/** Waits before the second try of a fetch and the third. */
const FETCH_WAITS_MS = [1_000, 4_000];
/**
 * Until a file is asked for anew that the egress proxy did not let us have, or that found no storage: others must be
 * imported first.
 */
export const FETCH_RETRY_AFTER_MS = 60_000;

/** @returns the import once its file is here whole; undefined if it is out of this worker's hands. */
export async function fetchImport(
  deps: FetchImportDeps,
  row: ImportRow,
  address: string,
  advance: AdvanceImport,
): Promise<ImportRow | undefined> {
  const fetching = new ImportFetch(deps, row, advance);
  return (await fetching.fetch(address)) ? fetching.row : undefined;
}

class ImportFetch {
  readonly #deps: FetchImportDeps;
  readonly #advance: AdvanceImport;
  row: ImportRow;

  constructor(deps: FetchImportDeps, row: ImportRow, advance: AdvanceImport) {
    this.#deps = deps;
    this.row = row;
    this.#advance = advance;
  }

  /** True once the file is here whole. */
  async fetch(address: string): Promise<boolean> {
    const { pause, stopping } = this.#deps;
    for (let tries = 0; ; tries++) {
      try {
        return await this.#fetchOnce(address);
      } catch (error) {
        if (error instanceof ProxyFailure) {
          await this.#waitForProxy(error);
          return false;
        }
        if (!(error instanceof FetchFault)) throw error;
        const waitMs = FETCH_WAITS_MS[tries];
        if (!error.mayPass || waitMs === undefined) {
          await this.#advance({ state: 'failed', error: error.message });
          return false;
        }
        await pause(waitMs, stopping).catch(() => undefined);
        if (stopping.aborted) {
          await this.#release();
          return false;
        }
      }
    }
  }

  /**
   * A proxy failure is no fact about the file, so the import does not end. Other imports of its workspace that need no
   * proxy go on meanwhile.
   */
  async #waitForProxy({ message, cause }: ProxyFailure): Promise<void> {
    const { environmentId, importId } = this.row;
    this.#deps.logger.warn(
      { error: cause, environmentId, importId },
      'the egress proxy did not reach the file of an import; the worker tries again',
    );
    await this.#advance({
      state: 'preprocessing',
      error: `waits until the file can be fetched: ${message}`,
      leaseMs: FETCH_RETRY_AFTER_MS,
      isWaiting: true,
    });
  }

  /** The file has not come whole: the next worker of the import fetches it from the start. */
  async #release(): Promise<void> {
    await this.#advance({ state: 'preprocessing', leaseMs: 0 });
  }

  async #fetchOnce(address: string): Promise<boolean> {
    const unwanted = new AbortController();
    try {
      return await this.#fetchUntil(address, unwanted.signal);
    } finally {
      // A server that sends for ever, or never answers, is left at once.
      unwanted.abort();
    }
  }

  async #fetchUntil(address: string, unwanted: AbortSignal): Promise<boolean> {
    const { database, fetchFile, sizeBytesMax, storage, stopping } = this.#deps;
    await clearImportChunks(database, this.row, this.row.fencing);
    const { environmentId } = this.row;
    if (!(await hasImportStorage(database, environmentId, 1, storage))) {
      await this.#waitForStorage(0);
      return false;
    }
    // Keeps the lease while the answer is waited for.
    if (!(await this.#keep(Buffer.alloc(0), 0))) return false;
    let sizeBytes = 0;
    let encoding: string | undefined;
    const tellEncoding = (declared: string): void => {
      // An unknown encoding is ignored, and the owner's counts before the server's.
      if (this.row.encoding === null && isKnownEncoding(declared)) encoding = declared;
    };
    const pieces = fetchFile(address, tellEncoding, unwanted);
    for await (const chunk of inChunks(pieces, WANTED_LOOK_MS)) {
      sizeBytes += chunk.length;
      if (sizeBytes > sizeBytesMax) {
        await this.#advance({
          state: 'failed',
          error: `the file is larger than ${sizeBytesMax} bytes; split it`,
        });
        return false;
      }
      if (stopping.aborted) {
        await this.#release();
        return false;
      }
      const isHeld = chunk.length > 0 ? await this.#keep(chunk, sizeBytes) : await this.#holdOn();
      if (!isHeld) return false;
    }
    if (encoding !== undefined) this.row = { ...this.row, encoding };
    return this.#advance({ state: 'preprocessed', ...(encoding !== undefined && { encoding }) });
  }

  /**
   * No piece has come for a while. False if this worker does not have the import any more: for example, it was
   * canceled.
   */
  #holdOn(): Promise<boolean> {
    return this.#advance({ state: 'preprocessing', leaseMs: this.#fetchLeaseMs });
  }

  /** Bytes may be slow to come, and if the lease ended meanwhile the fetch would begin again. */
  get #fetchLeaseMs(): number {
    return this.#deps.leaseMs + SILENCE_TIMEOUT_MS;
  }

  /** False if it is out of this worker's hands: it has ended, also for want of capacity, or waits for some. */
  async #keep(bytes: Buffer, fetchedSizeBytes: number): Promise<boolean> {
    const { database, unfinishedSizeBytesMax, storage, now } = this.#deps;
    const { fencing } = this.row;
    const bounds = { unfinishedSizeBytesMax, storage };
    const piece = { fencing, bytes, leaseMs: this.#fetchLeaseMs, nowMs: now(), ...bounds };
    const outcome = await appendImportChunk(database, this.row, piece);
    if (outcome === 'no_room') {
      const reason = waitsForCapacity(unfinishedSizeBytesMax);
      if (!(await waitForCapacity(database, this.row, piece, reason)))
        await this.#advance({ state: 'failed', error: largerThanCapacity(unfinishedSizeBytesMax) });
    }
    if (outcome === 'no_storage') await this.#waitForStorage(fetchedSizeBytes);
    return outcome === 'kept';
  }

  /** Its fetched bytes go, so that imports that others have begun can be finished. */
  async #waitForStorage(fetchedSizeBytes: number): Promise<void> {
    const { database, storage } = this.#deps;
    const { environmentId, fencing } = this.row;
    const bound = { capacity: storage.sizeBytesMax, sharePercent: storage.sharePercent };
    if (fetchedSizeBytes > mostOf(bound, await isOnlyWorkspace(database, environmentId))) {
      await this.#advance({ state: 'failed', error: largerThanStorage(storage.sizeBytesMax) });
      return;
    }
    await clearImportChunks(database, this.row, fencing);
    await this.#advance({
      state: 'preprocessing',
      error: WAITS_FOR_STORAGE,
      leaseMs: FETCH_RETRY_AFTER_MS,
      isWaiting: true,
    });
  }
}
