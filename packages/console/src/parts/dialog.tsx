/** A question before something is done: the browser's own dialog, which keeps the focus and closes by Escape. */
import { type ReactNode, useLayoutEffect, useRef } from 'react';

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
  // Before the next frame: text that is typed at once after the key that opens it goes into its field.
  useLayoutEffect(() => {
    const element = dialog.current;
    if (element && !element.open) element.showModal();
  }, []);
  return (
    <dialog ref={dialog} aria-labelledby="dialog-title" onClose={onClose}>
      <h2 id="dialog-title">{title}</h2>
      {children}
    </dialog>
  );
}
