/**
 * Marks of the keys that calls come with, until they are saved.
 *
 * A call costs one store. The marks are read beside the refresh of the keys (`refresh-keys.ts`), which gives them their
 * time, and each key is written at most once a minute. A key used for the first time is written with the next refresh,
 * a later use within a minute; a process that ends loses the uses since.
 */
import type { KeyUse, WorkspaceKey } from '@sluice/database/accounts/workspace-keys';

const SAVE_INTERVAL_MS = 60_000;

/** Of one key. The caller sets it. */
export interface UseMark {
  isUsed: boolean;
}

interface Entry extends UseMark {
  readonly accountId: number;
  readonly credentialId: number;
  usedAtMs: number;
  savedAtMs: number;
  triedAtMs: number;
}

export class KeyUses {
  #entries = new Map<string, Entry>();

  /** The keys that are in force from now on. Marks of others are dropped. */
  keep(keys: readonly WorkspaceKey[]): void {
    const entries = new Map<string, Entry>();
    for (const { credentialId, accountId } of keys)
      if (credentialId !== undefined)
        entries.set(
          credentialId,
          this.#entries.get(credentialId) ?? newEntry(Number(accountId), Number(credentialId)),
        );
    this.#entries = entries;
  }

  /** A key whose credential is not known has a mark that is never read. */
  markOf({ credentialId = '' }: WorkspaceKey): UseMark {
    return this.#entries.get(credentialId) ?? { isUsed: false };
  }

  /** Saves the uses of the keys that were not written within the last minute. Not to be called twice at once. */
  async save(nowMs: number, saveUses: (uses: readonly KeyUse[]) => Promise<void>): Promise<void> {
    const due: Entry[] = [];
    for (const entry of this.#entries.values()) {
      if (entry.isUsed) {
        entry.isUsed = false;
        entry.usedAtMs = nowMs;
      }
      const isSaved = entry.usedAtMs <= entry.savedAtMs;
      if (!isSaved && nowMs - entry.triedAtMs >= SAVE_INTERVAL_MS) due.push(entry);
    }
    if (due.length === 0) return;
    for (const entry of due) entry.triedAtMs = nowMs;
    await saveUses(
      due.map(({ accountId, credentialId, usedAtMs }) => ({ accountId, credentialId, usedAtMs })),
    );
    for (const entry of due) entry.savedAtMs = entry.usedAtMs;
  }
}

const newEntry = (accountId: number, credentialId: number): Entry => ({
  accountId,
  credentialId,
  isUsed: false,
  usedAtMs: 0,
  savedAtMs: 0,
  triedAtMs: 0,
});
