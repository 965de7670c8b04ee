/** A payload that is tried against the schema of its type: whether publishing would take it, and why not. */
import { type FormEvent, useEffect, useState } from 'react';
import { post } from '../client/calls.ts';
import type { AnswerOf } from '../client/operations.ts';
import { request } from '../client/request.ts';
import { useReach } from '../client/session.ts';
import { Refusal } from '../forms/form-end.tsx';
import { formText } from '../forms/form-text.ts';
import { useWork } from '../forms/use-work.ts';
import { jsonOf } from '../json/json-text.ts';
import { visibleText } from '../sentences/visible-text.ts';
import type { JsonSchema } from './event-type.ts';

/** A `pointer` of it is into the payload (RFC 6901). */
type Verdict = AnswerOf<'post', '/v1/event_types/{name}/check'>;

export function PayloadCheck({
  id,
  name,
  isAny = false,
  draft,
}: {
  /** Of the page, in which there may be two of these. */
  readonly id: string;
  /** Of a new type: of no meaning yet. */
  readonly name: string;
  /** The version in force has no schema. */
  readonly isAny?: boolean;
  /** The schema as it is typed, used in place of the stored one. Absent: the stored one. */
  readonly draft?: string;
}) {
  const { workspaceId } = useReach();
  const [verdict, setVerdict] = useState<Verdict>();
  const [notJson, setNotJson] = useState<string>();
  const { isRunning, problem, run } = useWork();
  // It was of another schema.
  useEffect(() => setVerdict(undefined), [draft]);
  const check = (event: FormEvent<HTMLFormElement>): void => {
    event.preventDefault();
    const payload = jsonOf(formText(event.currentTarget, 'payload'));
    // Of no schema any payload is taken.
    const schema = draft === undefined ? undefined : jsonOf(draft);
    setVerdict(undefined);
    setNotJson(
      (schema?.problem && `schema: ${schema.problem}`) ??
        (payload.problem && `payload: ${payload.problem}`),
    );
    if ((schema?.problem ?? payload.problem) !== undefined) return;
    void run(async () => {
      setVerdict(
        await request(
          post('/v1/event_types/{name}/check', {
            path: { name },
            body: {
              payload: payload.value as NonNullable<JsonSchema>,
              ...(schema && { schema: (schema.value ?? {}) as JsonSchema }),
            },
          }),
          { workspaceId },
        ),
      );
    });
  };
  return (
    <section className="card" aria-labelledby={`${id}-title`}>
      <h2 id={`${id}-title`}>{draft === undefined ? 'Try a payload' : 'Try a payload before'}</h2>
      <form className="stack" onSubmit={check} onInput={() => setVerdict(undefined)}>
        <label htmlFor={`${id}-payload`}>
          Payload, which is not published{isAny && ': any JSON object fits'}
        </label>
        <textarea
          id={`${id}-payload`}
          name="payload"
          className="code"
          rows={6}
          spellCheck={false}
          defaultValue="{}"
        />
        <div className="actions">
          <button type="submit" className={draft === undefined ? 'main' : ''} disabled={isRunning}>
            Check it
          </button>
        </div>
        <Refusal problem={notJson ?? problem} />
      </form>
      <div role="status">
        {verdict?.fits && (
          <p>It fits{verdict.version !== null && ` version ${verdict.version}`}.</p>
        )}
        {verdict?.fits === false && (
          <>
            <p>It would be refused:</p>
            <ul>
              {verdict.errors.map(({ pointer, message }) => (
                <li key={`${pointer} ${message}`}>
                  <code>{visibleText(pointer === '' ? 'the payload' : pointer)}</code>{' '}
                  {visibleText(message)}
                </li>
              ))}
            </ul>
          </>
        )}
      </div>
    </section>
  );
}
