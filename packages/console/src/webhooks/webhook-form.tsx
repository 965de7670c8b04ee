/** The form that makes a webhook, or changes one: where it sends, and what. */
import { type FormEvent, useState } from 'react';
import { useSession } from '../client/session.ts';
import { FormEnd } from '../forms/form-end.tsx';
import { formText } from '../forms/form-text.ts';
import { useCallOnce } from '../forms/use-call-once.ts';
import { useWork } from '../forms/use-work.ts';
import { announce } from '../parts/announcer.tsx';
import { Dialog } from '../parts/dialog.tsx';
import { changedHeaders, headerLines } from '../sentences/header-text.ts';
import {
  conditionLines,
  conditionsOf,
  INCOMING_TYPES,
  isIncoming,
  linesOf,
  typesOf,
} from '../sentences/subscription-text.ts';
import { AddressFields, isElsewhere } from './address-fields.tsx';
import type { Webhook } from './configuration.ts';

export function WebhookForm({
  webhook,
  onClose,
  onSaved,
}: {
  /** Absent: a new one. */
  readonly webhook?: Webhook;
  readonly onClose: () => void;
  readonly onSaved: () => void;
}) {
  const { workspaceId } = useSession();
  const [types, setTypes] = useState<readonly string[]>(
    webhook?.events.filter(isIncoming) ?? ['event'],
  );
  const [isExposing, setIsExposing] = useState(false);
  const [areHeaders, setAreHeaders] = useState(true);
  const shownHeaders = headerLines(webhook?.headers ?? {});
  const callOnce = useCallOnce();
  const { isRunning, problem, run } = useWork();
  const save = (event: FormEvent<HTMLFormElement>): void => {
    event.preventDefault();
    const form = event.currentTarget;
    const headers = changedHeaders(formText(form, 'headers'), shownHeaders, isExposing);
    setAreHeaders(headers !== undefined);
    if (headers === undefined) return;
    const body = { ...bodyOf(form, types, webhook), ...headers };
    void run(async () => {
      await callOnce(pathOf(webhook), { method: webhook ? 'PUT' : 'POST', body, workspaceId });
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
        <TypeChoice types={types} onChange={setTypes} />
        <SubscriptionFields webhook={webhook} />
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
            ? 'It is another server: the stored values are not sent there. Give those of the new one.'
            : 'Stored values are not shown. Who changes one gives all of them again.'}
        </p>
        <FormEnd
          problem={areHeaders ? problem : NO_HEADERS}
          isRunning={isRunning}
          what={webhook ? 'Change it' : 'Make the webhook'}
          onClose={onClose}
        />
      </form>
    </Dialog>
  );
}

function TypeChoice({
  types,
  onChange,
}: {
  readonly types: readonly string[];
  readonly onChange: (types: readonly string[]) => void;
}) {
  return (
    <fieldset>
      <legend>What comes in</legend>
      {Object.entries(INCOMING_TYPES).map(([type, text]) => (
        <label key={type}>
          <input
            type="checkbox"
            checked={types.includes(type)}
            onChange={(event) =>
              onChange(
                event.currentTarget.checked
                  ? [...types, type]
                  : types.filter((each) => each !== type),
              )
            }
          />{' '}
          {text}
        </label>
      ))}
    </fieldset>
  );
}

function SubscriptionFields({ webhook }: { readonly webhook: Webhook | undefined }) {
  const others = webhook?.events.filter((type) => !isIncoming(type)) ?? [];
  return (
    <>
      <label htmlFor="webhook-others">Types of messages, subscriptions and alerts</label>
      <input
        id="webhook-others"
        name="others"
        autoComplete="off"
        spellCheck={false}
        placeholder="email_sent, customer_unsubscribed"
        defaultValue={others.join(', ')}
      />
      <label htmlFor="webhook-names">
        Only tracked events and messages with these names, one a line
      </label>
      <textarea
        id="webhook-names"
        name="names"
        rows={2}
        spellCheck={false}
        placeholder="order_placed"
        defaultValue={webhook?.event_names?.join('\n') ?? ''}
      />
      <label htmlFor="webhook-conditions">Only what fits all of these, one a line</label>
      <textarea
        id="webhook-conditions"
        name="conditions"
        rows={2}
        spellCheck={false}
        placeholder="data.properties.total gte 100"
        defaultValue={conditionLines(webhook?.attribute_filters ?? null)}
      />
      <fieldset>
        <legend>With it</legend>
        <Choice
          name="person"
          isOn={webhook?.with_person_attributes}
          text="The person's attributes"
        />
        <Choice name="imports" isOn={webhook?.with_imports} text="Rows of imports" />
        <Choice name="late" isOn={webhook?.with_late} text="Events of more than 72 hours ago" />
      </fieldset>
    </>
  );
}

function Choice({
  name,
  isOn = false,
  text,
}: {
  readonly name: string;
  readonly isOn?: boolean | undefined;
  readonly text: string;
}) {
  return (
    <label>
      <input type="checkbox" name={name} defaultChecked={isOn} /> {text}
    </label>
  );
}

const pathOf = (webhook: Webhook | undefined): string =>
  webhook ? `/v1/reporting_webhooks/${webhook.id}` : '/v1/reporting_webhooks';

const NO_HEADERS =
  'headers: each is a line of its own with a name, a colon and a value, and no name is there twice';

/** Values with a comma are more than one in the form: conditions that nobody has changed are not sent. */
function bodyOf(
  form: HTMLFormElement,
  types: readonly string[],
  webhook: Webhook | undefined,
): object {
  const conditions = formText(form, 'conditions');
  const isChanged = conditions !== conditionLines(webhook?.attribute_filters ?? null);
  return {
    name: formText(form, 'name'),
    endpoint: formText(form, 'endpoint'),
    events: [...types, ...typesOf(formText(form, 'others'))],
    event_names: linesOf(formText(form, 'names')),
    ...(isChanged && { attribute_filters: conditionsOf(conditions) }),
    with_person_attributes: formText(form, 'person') !== '',
    with_imports: formText(form, 'imports') !== '',
    with_late: formText(form, 'late') !== '',
  };
}
