/** Secrets that are shown once: they are in this dialog alone, which only its button closes. */
import { type ReactNode, useEffect, useRef } from 'react';
import { CopyButton } from '../parts/copy-button.tsx';
import { refuseEscape } from '../parts/dialog.tsx';

export function SecretsOnce({
  title,
  secrets,
  children,
  onStored,
}: {
  readonly title: string;
  readonly secrets: readonly string[];
  readonly children: ReactNode;
  readonly onStored: () => void;
}) {
  const dialog = useRef<HTMLDialogElement>(null);
  useEffect(() => {
    const element = dialog.current;
    if (element && !element.open) element.showModal();
  }, []);
  return (
    <dialog
      ref={dialog}
      aria-labelledby="secrets-title"
      onKeyDown={refuseEscape}
      onCancel={(event) => event.preventDefault()}
      // A phone's gesture closes it without a key.
      onClose={() => dialog.current?.showModal()}
    >
      <h2 id="secrets-title">{title}</h2>
      {children}
      <pre className="secrets" tabIndex={0} role="region" aria-label={title}>
        {secrets.join('\n')}
      </pre>
      <div className="actions">
        <CopyButton text={secrets.join('\n')} label="Copy" />
        <button type="button" className="main" onClick={onStored}>
          I have stored {secrets.length === 1 ? 'it' : 'them'}
        </button>
      </div>
    </dialog>
  );
}
