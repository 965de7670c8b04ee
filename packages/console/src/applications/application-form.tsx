/** The form that makes an application, or renames one. Its id stays. */
import type { FormEvent } from 'react';
import { post, put } from '../client/calls.ts';
import { useReach } from '../client/session.ts';
import { FormEnd } from '../forms/form-end.tsx';
import { formText } from '../forms/form-text.ts';
import { useCallOnce } from '../forms/use-call-once.ts';
import { useWork } from '../forms/use-work.ts';
import { announce } from '../parts/announcer.tsx';
import { Dialog } from '../parts/dialog.tsx';
import { FOCUSED } from '../parts/focused.ts';
import type { Application } from './application.ts';

export function ApplicationForm({
  application,
  onClose,
  onSaved,
}: {
  /** Absent: a new one. */
  readonly application?: Application;
  readonly onClose: () => void;
  readonly onSaved: (application: Application) => void;
}) {
  const { workspaceId } = useReach();
  const callOnce = useCallOnce();
  const { isRunning, problem, run } = useWork();
  const save = (event: FormEvent<HTMLFormElement>): void => {
    event.preventDefault();
    const form = event.currentTarget;
    const id = formText(form, 'id');
    const name = formText(form, 'name');
    const call = application
      ? put('/v1/applications/{application_id}', {
          path: { application_id: application.id },
          body: { name },
        })
      : post('/v1/applications', { body: { ...(id !== '' && { id }), name } });
    void run(async () => {
      const saved = await callOnce(call, { workspaceId });
      announce(application ? 'The application is renamed' : 'The application is made');
      onSaved(saved);
    });
  };
  return (
    <Dialog
      title={application ? 'Rename the application' : 'Make an application'}
      onClose={onClose}
    >
      <form onSubmit={save}>
        <label htmlFor="application-name">Name</label>
        <input
          id="application-name"
          name="name"
          maxLength={200}
          required
          autoComplete="off"
          defaultValue={application?.name ?? ''}
          {...FOCUSED}
        />
        {!application && (
          <>
            <label htmlFor="application-id">
              Id: your own word for it, which messages name. If it is empty, one is made.
            </label>
            <input id="application-id" name="id" autoComplete="off" spellCheck={false} />
          </>
        )}
        <FormEnd
          problem={problem}
          isRunning={isRunning}
          what={application ? 'Rename it' : 'Make the application'}
          onClose={onClose}
        />
      </form>
    </Dialog>
  );
}
