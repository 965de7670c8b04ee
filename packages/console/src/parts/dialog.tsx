/** A question before something is done: the browser's own dialog, which keeps the focus and closes by Escape. */
import {
  createContext,
  type KeyboardEvent,
  type ReactNode,
  useContext,
  useLayoutEffect,
  useRef,
} from 'react';

const HoldContext = createContext((_isHeld: boolean): void => {});

/** Keeps the dialog around the part open: the answer that it waits for has a secret that is shown once. */
export function useHeldDialog(isHeld: boolean): void {
  const hold = useContext(HoldContext);
  useLayoutEffect(() => {
    hold(isHeld);
    return () => hold(false);
  }, [hold, isHeld]);
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
