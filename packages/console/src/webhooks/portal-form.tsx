/** The form of the portal, which makes a webhook or changes one. It has the fields that a customer may set. */
import { type FormEvent, useState } from 'react';
import { post, put } from '../client/calls.ts';
import { request } from '../client/request.ts';
import { useReach } from '../client/session.ts';
import { FormEnd } from '../forms/form-end.tsx';
import { formText } from '../forms/form-text.ts';
import { useCallOnce } from '../forms/use-call-once.ts';
import { useWork } from '../forms/use-work.ts';
import { announce } from '../parts/announcer.tsx';
import { Dialog } from '../parts/dialog.tsx';
import { AddressFields, isElsewhere } from './address-fields.tsx';
import type { NewWebhook, Webhook } from './configuration.ts';
import { CredentialFields, credentialsOf } from './credential-fields.tsx';
import { SendingFields, sendingOf } from './sending-fields.tsx';

export function PortalForm({
  webhook,
  onClose,
  onSaved,
}: {
  /** Absent: one is made. */
  readonly webhook?: Webhook;
  readonly onClose: () => void;
  readonly onSaved: () => void;
}) {
  const { workspaceId, eventTypes, isOfApplication } = useReach();
  const [isExposing, setIsExposing] = useState(false);
  const callOnce = useCallOnce();
  const { isRunning, problem, run } = useWork();
  const chosen = (isOfApplication ? webhook?.event_names : webhook?.events) ?? [];
  const shown = [...new Set([...chosen, ...eventTypes])].toSorted();
  const save = (event: FormEvent<HTMLFormElement>): void => {
    event.preventDefault();
    const form = event.currentTarget;
    const events = new FormData(form).getAll('events').map(String);
    const subscription: Pick<NewWebhook, 'events' | 'event_names'> = isOfApplication
      ? { events: ['message'], event_names: events }
      : { events: events as NewWebhook['events'] };
    const endpoint = formText(form, 'endpoint');
    const body = {
      name: formText(form, 'name'),
      endpoint,
      // An application's endpoint gets its messages: all, or the ones with these names.
      ...subscription,
      ...sendingOf(form),
      // Stored headers were given for the former server, and are not sent to another.
      ...(isExposing && { headers: {} }),
      ...credentialsOf(form, webhook, isExposing),
    };
    void run(async () => {
      if (webhook) {
        const path = { webhook_id: webhook.id };
        await request(put('/v1/reporting_webhooks/{webhook_id}', { path, body }), { workspaceId });
      } else await callOnce(post('/v1/reporting_webhooks', { body }), { workspaceId });
      announce(webhook ? 'The webhook is changed' : 'The webhook is made');
      onSaved();
    });
  };
  return (
    <Dialog title={webhook ? 'Change the webhook' : 'Make a webhook'} onClose={onClose}>
      <form onSubmit={save}>
        <AddressFields
          webhook={webhook}
          onEndpoint={(endpoint) => setIsExposing(isElsewhere(endpoint, webhook))}
        />
        {isExposing && (
          <p>It is another server: headers and access tokens that were set are not sent there.</p>
        )}
        <fieldset hidden={isOfApplication && shown.length === 0}>
          <legend>Types of events{isOfApplication && ' (all if you choose no type)'}</legend>
          <div className="choices" tabIndex={0} role="group" aria-label="Types of events">
            {shown.map((each) => (
              <label key={each}>
                <input
                  type="checkbox"
                  name="events"
                  value={each}
                  defaultChecked={chosen.includes(each)}
                />{' '}
                {each}
              </label>
            ))}
          </div>
        </fieldset>
        <SendingFields sending={webhook} />
        <CredentialFields credentials={webhook} />
        <FormEnd
          problem={problem}
          isRunning={isRunning}
          what={webhook ? 'Save the changes' : 'Make the webhook'}
          onClose={onClose}
        />
      </form>
    </Dialog>
  );
}
