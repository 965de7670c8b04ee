/**
 * The session of a browser is the session of all its tabs. A tab that begins or ends one sends the others a message
 * without content, and each asks the API for the session that there is now.
 *
 * The channel is closed while the page is away, so that the browser can keep the page for Back.
 */
const NAME = 'sluice.session';

let channel: BroadcastChannel | undefined;

/** @returns ends that. */
export function watchOtherTabs(onChanged: () => void): () => void {
  const open = (): void => {
    if (channel) return;
    channel = new BroadcastChannel(NAME);
    channel.addEventListener('message', onChanged);
  };
  const close = (): void => {
    channel?.close();
    channel = undefined;
  };
  open();
  addEventListener('pageshow', open);
  addEventListener('pagehide', close);
  return () => {
    removeEventListener('pageshow', open);
    removeEventListener('pagehide', close);
    close();
  };
}

/** The sender itself gets no message. */
export function notifyOtherTabs(): void {
  // oxlint-disable-next-line unicorn/require-post-message-target-origin -- a channel is of this origin alone
  channel?.postMessage(null);
}
