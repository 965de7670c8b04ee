/**
 * The form that makes a webhook or an endpoint of an application. Or it changes one: its address, its events, and its
 * options.
 */
import { type FormEvent, useState } from 'react';
import { post, put } from '../client/calls.ts';
import { useSession } from '../client/session.ts';
import { FormEnd } from '../forms/form-end.tsx';
import { formText } from '../forms/form-text.ts';
import { SecretsOnce } from '../forms/secrets-once.tsx';
import { useCallOnce } from '../forms/use-call-once.ts';
import { useWork } from '../forms/use-work.ts';
import { announce } from '../parts/announcer.tsx';
import { Dialog } from '../parts/dialog.tsx';
import { changedHeaders, headerLines } from '../sentences/header-text.ts';
import { isIncoming } from '../sentences/subscription-text.ts';
import { AddressFields, isElsewhere } from './address-fields.tsx';
import type { Webhook, WebhookChanges } from './configuration.ts';
import { CredentialFields, credentialsOf } from './credential-fields.tsx';
import { SendingFields, sendingOf } from './sending-fields.tsx';
import {
  FilterFields,
  filtersOf,
  SubscriptionFields,
  subscriptionOf,
} from './subscription-fields.tsx';

export function WebhookForm({
  webhook,
  applicationId = webhook?.application_id,
  onClose,
  onSaved,
}: {
  /** Absent: a new one. */
  readonly webhook?: Webhook;
  /** Of an endpoint: whose it is. */
  readonly applicationId?: string | undefined;
  readonly onClose: () => void;
  readonly onSaved: () => void;
}) {
  const { workspaceId } = useSession();
  const [types, setTypes] = useState<readonly string[]>(
    webhook?.events.filter(isIncoming) ?? ['event'],
  );
  const [isExposing, setIsExposing] = useState(false);
  const [areHeaders, setAreHeaders] = useState(true);
  /** Of a new endpoint: in the state of this dialog alone, which is gone when it closes. */
  const [secret, setSecret] = useState<string>();
  const shownHeaders = headerLines(webhook?.headers ?? {});
  const callOnce = useCallOnce();
  const { isRunning, problem, run } = useWork();
  const isEndpoint = applicationId !== undefined;
  const what = isEndpoint ? 'endpoint' : 'webhook';
  const save = (event: FormEvent<HTMLFormElement>): void => {
    event.preventDefault();
    const form = event.currentTarget;
    const headers = changedHeaders(formText(form, 'headers'), shownHeaders, isExposing);
    setAreHeaders(headers !== undefined);
    if (headers === undefined) return;
    const body = {
      name: formText(form, 'name'),
      endpoint: formText(form, 'endpoint'),
      ...sendingOf(form),
      ...headers,
      ...credentialsOf(form, webhook, isExposing),
    };
    const ofEndpoint = { ...body, ...filtersOf(form, webhook) };
    const ofWebhook = { ...body, ...subscriptionOf(form, types, webhook) };
    void run(async () => {
      let made: { readonly secret?: string } = {};
      if (webhook)
        await callOnce(changeOf(webhook, isEndpoint ? ofEndpoint : ofWebhook), { workspaceId });
      else if (isEndpoint)
        made = await callOnce(
          post('/v1/applications/{application_id}/endpoints', {
            path: { application_id: applicationId },
            body: ofEndpoint,
          }),
          { workspaceId },
        );
      else await callOnce(post('/v1/reporting_webhooks', { body: ofWebhook }), { workspaceId });
      announce(`The ${what} is ${webhook ? 'changed' : 'made'}`);
      if (made.secret === undefined) onSaved();
      else setSecret(made.secret);
    });
  };
  if (secret !== undefined)
    return (
      <SecretsOnce title="The secret of the endpoint" secrets={[secret]} onStored={onSaved}>
        <p>Its receiver verifies signatures with it. It is not shown again.</p>
      </SecretsOnce>
    );
  const article = isEndpoint ? 'an' : 'a';
  return (
    <Dialog title={webhook ? `Change the ${what}` : `Make ${article} ${what}`} onClose={onClose}>
      <form onSubmit={save}>
        <AddressFields
          webhook={webhook}
          onEndpoint={(endpoint) => setIsExposing(isElsewhere(endpoint, webhook))}
        />
        {isEndpoint ? (
          <FilterFields
            subscription={webhook}
            names="Only messages of these types, one a line (empty: all of them)"
            example={['invoice.paid', 'data.payload.total gte 100']}
          />
        ) : (
          <SubscriptionFields subscription={webhook} types={types} onTypes={setTypes} />
        )}
        <SendingFields sending={webhook} />
        <label htmlFor="webhook-headers">Headers of each request, one a line</label>
        <textarea
          id="webhook-headers"
          name="headers"
          rows={2}
          autoComplete="off"
          spellCheck={false}
          placeholder="authorization: Bearer …"
          aria-describedby="webhook-headers-advice"
          defaultValue={shownHeaders}
        />
        <p id="webhook-headers-advice" className="faint">
          {isExposing && shownHeaders !== ''
            ? 'It is another server: the stored values are not sent there. Give the values of the new one.'
            : 'Stored values are not shown. To change one, give all of them again.'}
        </p>
        <CredentialFields credentials={webhook} />
        <FormEnd
          problem={areHeaders ? problem : NO_HEADERS}
          isRunning={isRunning}
          hasSecret={!webhook}
          what={webhook ? 'Change it' : `Make the ${what}`}
          onClose={onClose}
        />
      </form>
    </Dialog>
  );
}

const changeOf = ({ id }: Webhook, body: WebhookChanges) =>
  put('/v1/reporting_webhooks/{webhook_id}', { path: { webhook_id: id }, body });

const NO_HEADERS =
  'headers: each is a line of its own with a name, a colon and a value, and no name is there twice';
