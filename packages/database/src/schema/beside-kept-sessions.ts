/** A start's other questions to Postgres, beside the check of its sessions. */
import { requireKeptSessions, type SessionOptions } from '../connection/kept-sessions.ts';

/**
 * Runs `join` while the sessions are checked, which takes a dozen round trips on connections of its own. `join` must only
 * read, or make writes that may run twice.
 *
 * @returns the result of `join`.
 * @throws AppError SESSIONS_SHARED before any error of `join`: behind such a pooler a statement fails for no reason of its
 *   own. Otherwise the error of `join`.
 */
export async function joinBesideKeptSessions<Joined>(
  session: SessionOptions,
  join: () => Promise<Joined>,
): Promise<Joined> {
  const [checked, joined] = await Promise.allSettled([requireKeptSessions(session), join()]);
  if (checked.status === 'rejected') throw checked.reason;
  if (joined.status === 'rejected') throw joined.reason;
  return joined.value;
}
