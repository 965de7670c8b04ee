/** A button that deletes an object for good. Its name must be typed first. */
import { type FormEvent, type ReactNode, useState } from 'react';
import type { Call } from '../client/call.ts';
import { request } from '../client/request.ts';
import { type Capability, useReach } from '../client/session.ts';
import { announce } from '../parts/announcer.tsx';
import { Dialog } from '../parts/dialog.tsx';
import { FOCUSED } from '../parts/focused.ts';
import { visibleText } from '../sentences/visible-text.ts';
import { FormEnd } from './form-end.tsx';
import { useWork } from './use-work.ts';

export function DeleteButton({
  call,
  name,
  what,
  capability = 'workspace.manage',
  children,
  onDone,
}: {
  readonly call: Call<unknown>;
  /** That is typed. */
  readonly name: string;
  /** `the feed` */
  readonly what: string;
  readonly capability?: Capability;
  /** Objects that are deleted with it. */
  readonly children: ReactNode;
  readonly onDone: () => void;
}) {
  const { workspaceId, capabilities, notAllowed } = useReach();
  const [isAsking, setIsAsking] = useState(false);
  const [typed, setTyped] = useState('');
  const { isRunning, problem, run } = useWork();
  const isAllowed = capabilities.includes(capability);
  const close = (): void => {
    setIsAsking(false);
    setTyped('');
  };
  const remove = (event: FormEvent): void => {
    event.preventDefault();
    void run(async () => {
      await request(call, { workspaceId });
      announce(`${name} is deleted`);
      close();
      onDone();
    });
  };
  return (
    <>
      <button
        type="button"
        disabled={!isAllowed}
        title={isAllowed ? undefined : notAllowed}
        onClick={() => setIsAsking(true)}
      >
        Delete …
      </button>
      {isAsking && (
        <Dialog title={`Delete ${visibleText(name)}?`} onClose={close}>
          {children}
          <form onSubmit={remove}>
            <label htmlFor="delete-name">
              To delete {what}, type its name: <b>{visibleText(name)}</b>
            </label>
            <input
              id="delete-name"
              autoComplete="off"
              spellCheck={false}
              value={typed}
              onInput={(event) => setTyped(event.currentTarget.value)}
              {...FOCUSED}
            />
            <FormEnd
              problem={problem}
              isRunning={isRunning}
              isReady={typed.trim() === name.trim()}
              what={`Delete ${what}`}
              onClose={close}
            />
          </form>
        </Dialog>
      )}
    </>
  );
}
