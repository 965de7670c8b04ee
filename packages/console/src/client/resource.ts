/**
 * Reads of the API that screens show: one copy of each call in memory, read again after a write and by interval.
 * Data that could not be read again stays, with its age.
 */
import { useCallback, useEffect, useMemo, useSyncExternalStore } from 'react';
import type { Call } from './call.ts';
import { useFirstRead } from './first-reads.ts';
import { request, RequestFailed } from './request.ts';

export interface Resource<Data> {
  /** The latest answer; it stays if a later read fails. */
  readonly data: Data | undefined;
  readonly failure: RequestFailed | undefined;
  /** Of the latest answer; 0 before the first. */
  readonly readAtMs: number;
}

interface Entry {
  resource: Resource<unknown>;
  readonly listeners: Set<() => void>;
  reading: Promise<void> | undefined;
  /** Unix milliseconds: no read by interval before, as a 429 or 503 wants it. */
  notBeforeMs: number;
}

const NOTHING: Resource<never> = { data: undefined, failure: undefined, readAtMs: 0 };
const ENTRY_COUNT_MAX = 200;
/** A screen that comes back within this time shows the stored answer without a read. */
const FRESH_MS = 2_000;

const entries = new Map<string, Entry>();

const keyOf = (call: Call<unknown>, workspaceId: number | undefined): string =>
  `${workspaceId ?? ''} ${call.key}`;

function entryOf(key: string): Entry {
  const found = entries.get(key);
  if (found) return found;
  // Oldest first; one that a screen shows is kept.
  for (const [each, { listeners }] of entries) {
    if (entries.size < ENTRY_COUNT_MAX) break;
    if (listeners.size === 0) entries.delete(each);
  }
  const made: Entry = {
    resource: NOTHING,
    listeners: new Set(),
    reading: undefined,
    notBeforeMs: 0,
  };
  entries.set(key, made);
  return made;
}

function read(call: Call<unknown>, workspaceId: number | undefined): Promise<void> {
  const entry = entryOf(keyOf(call, workspaceId));
  entry.reading ??= request(call, { workspaceId })
    .then(
      (data) => ({ data, failure: undefined, readAtMs: Date.now() }),
      (error: unknown) => {
        if (!(error instanceof RequestFailed)) throw error;
        entry.notBeforeMs = Date.now() + (error.retryAfterSeconds ?? 0) * 1_000;
        // A deleted object disappears; an answer that cannot be read again now stays.
        const isGone = error.status === 404;
        return { ...(isGone ? NOTHING : entry.resource), failure: error };
      },
    )
    .then((resource) => {
      entry.resource = resource;
    })
    .finally(() => {
      entry.reading = undefined;
      for (const listener of entry.listeners) listener();
    });
  return entry.reading;
}

/** Forgets everything that was read, as at the end of a session. */
export function forgetResources(): void {
  entries.clear();
}

/** The read in progress may have begun before a write, so its answer is not enough. */
async function readAnew(call: Call<unknown>, workspaceId: number | undefined): Promise<void> {
  await entryOf(keyOf(call, workspaceId)).reading;
  return read(call, workspaceId);
}

export interface ResourceOptions {
  readonly workspaceId?: number | undefined;
  /** Absent: it is not read again by itself. A hidden page does not read. */
  readonly intervalMs?: number;
}

/** @param call - undefined: no read. */
export function useResource<Data>(
  call: Call<Data> | undefined,
  { workspaceId, intervalMs }: ResourceOptions = {},
): Resource<Data> & { readonly reload: () => Promise<void> } {
  const key = call && keyOf(call, workspaceId);
  // Made anew by each drawing, while its key stays.
  const asked = useMemo(() => call, [key]);
  const subscribe = useCallback(
    (listener: () => void) => {
      if (key === undefined) return () => {};
      const { listeners } = entryOf(key);
      listeners.add(listener);
      return () => void listeners.delete(listener);
    },
    [key],
  );
  const resource = useSyncExternalStore(subscribe, () =>
    key === undefined ? NOTHING : entryOf(key).resource,
  ) as Resource<Data>;
  useFirstRead(key !== undefined && resource.data === undefined && !resource.failure);

  const reload = useCallback(
    () => (asked ? readAnew(asked, workspaceId) : Promise.resolve()),
    [asked, workspaceId],
  );
  useEffect(() => {
    if (key === undefined || !asked) return undefined;
    if (Date.now() - entryOf(key).resource.readAtMs > FRESH_MS) void read(asked, workspaceId);
    if (intervalMs === undefined) return undefined;
    const timer = setInterval(() => {
      if (document.visibilityState !== 'visible') return;
      if (Date.now() >= entryOf(key).notBeforeMs) void read(asked, workspaceId);
    }, intervalMs);
    return () => clearInterval(timer);
  }, [key, asked, workspaceId, intervalMs]);
  return { ...resource, reload };
}
