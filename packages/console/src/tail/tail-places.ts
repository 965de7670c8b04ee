/**
 * Places for the live tails of all tabs of this browser.
 *
 * An open tail keeps a connection, and by HTTP/1.1 a browser has six for a host. With six tails open, the other calls
 * of all tabs wait. So four tails are open at once, and two connections stay for the other calls. A place is a lock of
 * the browser (Web Locks), so it is free again when its tab is closed or has crashed. A tab that begins to wait sends
 * the others a message without content.
 */
const PLACES = ['sluice.tail.1', 'sluice.tail.2', 'sluice.tail.3', 'sluice.tail.4'];
const CHANNEL = 'sluice.tail';

type GiveBack = () => void;

/** A lock of the browser; undefined if `ifAvailable` is asked for and another tab has it. */
const lock = (name: string, options: LockOptions): Promise<GiveBack | undefined> =>
  new Promise((resolve, reject) => {
    const held = navigator.locks.request(name, options, (granted) =>
      granted ? new Promise<void>((giveBack) => resolve(giveBack)) : resolve(undefined),
    );
    held.catch(reject);
  });

/**
 * Takes a place, at once or when another tab gives one back.
 *
 * @param onWaiting - called if no place is free.
 * @returns gives the place back.
 * @throws DOMException if `signal` aborts it.
 */
export async function takePlace(signal: AbortSignal, onWaiting: () => void): Promise<GiveBack> {
  // A browser has locks on pages of https and of this machine alone.
  if (!('locks' in navigator)) return () => {};
  for (const name of PLACES) {
    const giveBack = await lock(name, { ifAvailable: true });
    if (giveBack) return giveBack;
  }
  signal.throwIfAborted();
  onWaiting();
  // The caller may rather not wait.
  signal.throwIfAborted();
  return waitForPlace(signal);
}

async function waitForPlace(signal: AbortSignal): Promise<GiveBack> {
  const queue = new AbortController();
  const leave = (): void => queue.abort();
  signal.addEventListener('abort', leave);
  const turns = PLACES.map(async (name) => {
    const giveBack = await lock(name, { signal: queue.signal });
    if (!giveBack) throw new Error('a lock that is waited for was not given');
    return giveBack;
  });
  // After the requests, so that a tab that is hidden meanwhile finds them (`isPlaceAwaited`).
  const channel = new BroadcastChannel(CHANNEL);
  // oxlint-disable-next-line unicorn/require-post-message-target-origin -- a channel is of this origin alone
  channel.postMessage(null);
  channel.close();
  try {
    const first = await Promise.any(turns);
    // Several may become free at once.
    for (const turn of turns)
      turn.then(
        (giveBack) => giveBack === first || giveBack(),
        () => undefined,
      );
    return first;
  } finally {
    leave();
    signal.removeEventListener('abort', leave);
  }
}

/** Whether a tab waits for a place. */
export async function isPlaceAwaited(): Promise<boolean> {
  if (!('locks' in navigator)) return false;
  const { pending = [] } = await navigator.locks.query();
  return pending.some(({ name }) => name !== undefined && PLACES.includes(name));
}

/** Calls `onAwaited` when another tab begins to wait. @returns ends that. */
export function watchAwaited(onAwaited: () => void): () => void {
  if (!('locks' in navigator)) return () => {};
  const channel = new BroadcastChannel(CHANNEL);
  channel.addEventListener('message', onAwaited);
  return () => channel.close();
}
