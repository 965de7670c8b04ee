/** The dialog that makes a link to the portal of an application. The link is shown once, and opens once. */
import { type FormEvent, useState } from 'react';
import { post } from '../client/calls.ts';
import type { AnswerOf, BodyOf } from '../client/operations.ts';
import { useReach } from '../client/session.ts';
import { FormEnd } from '../forms/form-end.tsx';
import { formText } from '../forms/form-text.ts';
import { SecretsOnce } from '../forms/secrets-once.tsx';
import { useCallOnce } from '../forms/use-call-once.ts';
import { useWork } from '../forms/use-work.ts';
import { announce } from '../parts/announcer.tsx';
import { Dialog } from '../parts/dialog.tsx';
import { FOCUSED } from '../parts/focused.ts';
import { Time } from '../parts/time.tsx';

/** With the names of the portal's own API; to look is always allowed. */
const CAPABILITIES = {
  create: 'Make endpoints',
  edit: 'Change and pause them',
  resend: 'Send again, try, test, replay',
  rotate: 'Change their secrets',
} as const;

const DURATIONS = { 3600: 'an hour', 86400: 'a day', 604800: 'seven days' } as const;

type WantedLink = BodyOf<'post', '/v1/portal_links'>;
type MadeLink = AnswerOf<'post', '/v1/portal_links'>;

export function NewPortalLink({
  applicationId,
  onClose,
}: {
  readonly applicationId: string;
  readonly onClose: () => void;
}) {
  const { workspaceId } = useReach();
  // In the state of this dialog alone, which is gone when it closes.
  const [made, setMade] = useState<MadeLink>();
  const callOnce = useCallOnce();
  const { isRunning, problem, run } = useWork();
  const make = (event: FormEvent<HTMLFormElement>): void => {
    event.preventDefault();
    const form = event.currentTarget;
    const body: WantedLink = {
      for: formText(form, 'for'),
      application: applicationId,
      capabilities: new FormData(form).getAll('capabilities') as WantedLink['capabilities'],
      expires_in: Number(formText(form, 'expires_in')),
    };
    void run(async () => {
      setMade(await callOnce(post('/v1/portal_links', { body }), { workspaceId }));
      announce('The link is made');
    });
  };
  if (made)
    return (
      <SecretsOnce title="The link to the portal" secrets={[made.url]} onStored={onClose}>
        <p>
          It opens once, within the next minute. The visitor stays in until{' '}
          <Time atMs={Date.parse(made.expires_at)} isWhole />.
        </p>
      </SecretsOnce>
    );
  return (
    <Dialog title="Make a link to the portal" onClose={onClose}>
      <p>
        It opens the endpoints of this application only. In your product your server makes one for
        each visit, with <code>POST /v1/portal_links</code>.
      </p>
      <form onSubmit={make}>
        <label htmlFor="link-for">For whom, as the audit log shows it</label>
        <input
          id="link-for"
          name="for"
          maxLength={200}
          required
          autoComplete="off"
          placeholder="acme/jo"
          {...FOCUSED}
        />
        <fieldset>
          <legend>May</legend>
          {Object.entries(CAPABILITIES).map(([capability, text]) => (
            <label key={capability}>
              <input type="checkbox" name="capabilities" value={capability} defaultChecked /> {text}
            </label>
          ))}
        </fieldset>
        <label htmlFor="link-duration">Open for</label>
        <select id="link-duration" name="expires_in" defaultValue="3600">
          {Object.entries(DURATIONS).map(([seconds, text]) => (
            <option key={seconds} value={seconds}>
              {text}
            </option>
          ))}
        </select>
        <FormEnd
          problem={problem}
          isRunning={isRunning}
          hasSecret
          what="Make the link"
          onClose={onClose}
        />
      </form>
    </Dialog>
  );
}
