/** The form that describes an event type, or changes it. Another schema is another version. */
import { type FormEvent, useState } from 'react';
import { put } from '../client/calls.ts';
import { useReach } from '../client/session.ts';
import { FormEnd } from '../forms/form-end.tsx';
import { formText } from '../forms/form-text.ts';
import { useCallOnce } from '../forms/use-call-once.ts';
import { useWork } from '../forms/use-work.ts';
import { announce } from '../parts/announcer.tsx';
import { Dialog } from '../parts/dialog.tsx';
import { FOCUSED } from '../parts/focused.ts';
import { jsonOf } from '../json/json-text.ts';
import { visibleText } from '../sentences/visible-text.ts';
import type { EventType, JsonSchema } from './event-type.ts';
import { PayloadCheck } from './payload-check.tsx';

const EXAMPLE = `{
  "type": "object",
  "required": ["invoice_id"],
  "properties": { "total": { "type": "number", "minimum": 0 } }
}`;

export function EventTypeForm({
  type,
  onClose,
  onSaved,
}: {
  /** Absent: a new one. */
  readonly type?: EventType;
  readonly onClose: () => void;
  readonly onSaved: () => void;
}) {
  const { workspaceId } = useReach();
  const [draft, setDraft] = useState(
    type && type.schema !== null ? JSON.stringify(type.schema, null, 2) : '',
  );
  const [notJson, setNotJson] = useState<string>();
  const callOnce = useCallOnce();
  const { isRunning, problem, run } = useWork();
  const save = (event: FormEvent<HTMLFormElement>): void => {
    event.preventDefault();
    const form = event.currentTarget;
    const name = type?.name ?? formText(form, 'name');
    const schema = jsonOf(draft);
    setNotJson(schema.problem && `schema: ${schema.problem}`);
    if (schema.problem !== undefined) return;
    const body = {
      description: formText(form, 'description'),
      schema: (schema.value ?? null) as JsonSchema,
    };
    void run(async () => {
      await callOnce(put('/v1/event_types/{name}', { path: { name }, body }), { workspaceId });
      announce(type ? 'The event type is changed' : 'The event type is made');
      onSaved();
    });
  };
  return (
    <Dialog
      title={type ? `Change ${visibleText(type.name)}` : 'Make an event type'}
      onClose={onClose}
    >
      <form onSubmit={save}>
        {!type && (
          <>
            <label htmlFor="type-name">Name, as it is published</label>
            <input
              id="type-name"
              name="name"
              required
              autoComplete="off"
              spellCheck={false}
              placeholder="invoice.paid"
              {...FOCUSED}
            />
          </>
        )}
        <label htmlFor="type-description">Description, which customers read</label>
        <textarea
          id="type-description"
          name="description"
          rows={2}
          maxLength={1000}
          defaultValue={type?.description ?? ''}
          {...(type && FOCUSED)}
        />
        <label htmlFor="type-schema">JSON Schema of the payload (empty: any payload)</label>
        <textarea
          id="type-schema"
          name="schema"
          className="code"
          rows={10}
          autoComplete="off"
          spellCheck={false}
          placeholder={EXAMPLE}
          aria-describedby="type-schema-advice"
          value={draft}
          onInput={(event) => setDraft(event.currentTarget.value)}
        />
        <p id="type-schema-advice" className="faint">
          Another schema is another version. Publishing holds payloads to it within a second.
        </p>
        <FormEnd
          problem={notJson ?? problem}
          isRunning={isRunning}
          what={type ? 'Change it' : 'Make the event type'}
          onClose={onClose}
        />
      </form>
      <PayloadCheck id="draft" name={type?.name ?? 'draft'} draft={draft} />
    </Dialog>
  );
}
