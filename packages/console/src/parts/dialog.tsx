/** A question before something is done: the browser's own dialog, which keeps the focus and closes by Escape. */
import {
  createContext,
  type KeyboardEvent,
  type ReactNode,
  useContext,
  useEffect,
  useLayoutEffect,
  useRef,
  useState,
} from 'react';

const HoldContext = createContext((_isHeld: boolean): void => {});

/** A connection that the network has dropped gives neither an answer nor a failure. */
const HELD_MS_MAX = 60_000;

/**
 * Keeps the dialog around the part open for a minute: the answer that it waits for has a secret that is shown once.
 *
 * @returns whether it is held now; after the minute it may be closed.
 */
export function useHeldDialog(isWaiting: boolean): boolean {
  const hold = useContext(HoldContext);
  const [isLate, setIsLate] = useState(false);
  useEffect(() => {
    if (!isWaiting) return undefined;
    const timer = setTimeout(() => setIsLate(true), HELD_MS_MAX);
    return () => {
      clearTimeout(timer);
      setIsLate(false);
    };
  }, [isWaiting]);
  const isHeld = isWaiting && !isLate;
  useLayoutEffect(() => {
    hold(isHeld);
    return () => hold(false);
  }, [hold, isHeld]);
  return isHeld;
}

/** The browser closes a dialog at the second Escape although `cancel` is refused. With the key refused it stays open. */
export const refuseEscape = (event: KeyboardEvent): void => {
  if (event.key === 'Escape') event.preventDefault();
};

export function Dialog({
  title,
  children,
  onClose,
}: {
  readonly title: string;
  readonly children: ReactNode;
  readonly onClose: () => void;
}) {
  const dialog = useRef<HTMLDialogElement>(null);
  const isHeld = useRef(false);
  const hold = useRef((now: boolean): void => {
    isHeld.current = now;
  });
  // Before the next frame: text that is typed at once after the key that opens it goes into its field.
  useLayoutEffect(() => {
    const element = dialog.current;
    if (element && !element.open) element.showModal();
  }, []);
  return (
    <dialog
      ref={dialog}
      aria-labelledby="dialog-title"
      onKeyDown={(event) => isHeld.current && refuseEscape(event)}
      onCancel={(event) => isHeld.current && event.preventDefault()}
      // A phone's gesture closes it without a key.
      onClose={() => (isHeld.current ? dialog.current?.showModal() : onClose())}
    >
      <h2 id="dialog-title">{title}</h2>
      <HoldContext.Provider value={hold.current}>{children}</HoldContext.Provider>
    </dialog>
  );
}
