/** Tries a call in the user's session: a read is sent at once, a change only after a question. */
import { type FormEvent, useState } from 'react';
import { send, RequestFailed } from '../client/request.ts';
import { useSession } from '../client/session.ts';
import { FormEnd, Refusal } from '../forms/form-end.tsx';
import { formText } from '../forms/form-text.ts';
import { useWork } from '../forms/use-work.ts';
import { Dialog } from '../parts/dialog.tsx';
import { JsonView } from '../json/json-view.tsx';
import { visibleText } from '../sentences/visible-text.ts';
import { jsonOf } from '../json/json-text.ts';
import { filledPath } from './call-example.ts';
import {
  boundsText,
  type DescribedCall,
  type Document,
  type Parameter,
  parametersOf,
} from './described-call.ts';
import { Prose } from './prose.tsx';

interface Wish {
  readonly path: string;
  readonly body: unknown;
}

interface Answer {
  readonly status: number;
  readonly text: string;
  readonly headers: Headers;
  readonly durationMs: number;
}

/** A stream, and a file, are not for a form. */
const isTried = ({ path, operation }: DescribedCall): boolean =>
  path !== '/v1/stream' &&
  (operation.requestBody === undefined ||
    operation.requestBody.content['application/json'] !== undefined);

export function TryCall({
  call,
  body,
  document,
  known,
}: {
  readonly call: DescribedCall;
  readonly document: Document;
  /** An example. Undefined: it takes no body. */
  readonly body: unknown;
  /** The known value of a parameter; else empty. */
  readonly known: (parameter: Parameter) => string;
}) {
  const { workspaceId } = useSession();
  const [wish, setWish] = useState<Wish>();
  const [answer, setAnswer] = useState<Answer>();
  const [wrong, setWrong] = useState<string>();
  const { isRunning, problem, run } = useWork();
  const shown = parametersOf(call, document).filter(
    ({ in: place }) => place === 'path' || place === 'query',
  );
  if (!isTried(call)) return null;
  const isRead = call.method === 'GET';
  const perform = ({ path, body: given }: Wish): void => {
    setWish(undefined);
    void run(async () => {
      const startedAtMs = performance.now();
      const show = (shownAnswer: Omit<Answer, 'durationMs'>): void =>
        setAnswer({ ...shownAnswer, durationMs: Math.round(performance.now() - startedAtMs) });
      try {
        const sent = await send(path, {
          method: call.method,
          workspaceId,
          ...(given !== undefined && { body: given }),
          ...(!isRead && { idempotencyKey: crypto.randomUUID() }),
        });
        show({ status: sent.status, headers: sent.headers, text: await sent.text() });
      } catch (error) {
        // A refusal is an answer too; a call without one has no result to show.
        if (!(error instanceof RequestFailed) || !error.answer) throw error;
        show({ status: error.status, ...error.answer });
      }
    });
  };
  const ask = (event: FormEvent<HTMLFormElement>): void => {
    event.preventDefault();
    const form = event.currentTarget;
    const path = filledPath(call, shown, ({ name }) => formText(form, `parameter-${name}`));
    const text = body === undefined ? '' : formText(form, 'body');
    const { value, problem: wrongJson } = jsonOf(text);
    setWrong(wrongJson && `body: ${wrongJson}`);
    if (wrongJson !== undefined) return;
    const given: Wish = { path, body: text.trim() === '' ? undefined : value };
    if (isRead) perform(given);
    else setWish(given);
  };
  return (
    <section className="card" aria-labelledby="try">
      <h2 id="try">Try it</h2>
      <p className="faint">It is sent in your session, for the chosen workspace.</p>
      <form className="stack" onSubmit={ask}>
        {shown.map((parameter) => (
          <label key={parameter.name}>
            {parameter.name}{' '}
            <span className="faint">
              <Prose text={boundsText(parameter.schema ?? {}, document)} />
            </span>
            <input
              name={`parameter-${parameter.name}`}
              autoComplete="off"
              spellCheck={false}
              required={parameter.in === 'path' || parameter.required === true}
              defaultValue={known(parameter)}
            />
          </label>
        ))}
        {body !== undefined && (
          <>
            <label htmlFor="try-body">Body</label>
            <textarea
              id="try-body"
              name="body"
              rows={8}
              spellCheck={false}
              defaultValue={JSON.stringify(body, null, 2)}
            />
          </>
        )}
        <Refusal problem={wrong ?? problem} />
        <div className="actions">
          <button type="submit" className="main" disabled={isRunning}>
            {isRead ? 'Send' : `Send ${call.method} …`}
          </button>
        </div>
      </form>
      {wish && (
        <Dialog title={`${call.method} ${wish.path}?`} onClose={() => setWish(undefined)}>
          <p>It changes data, as a program’s call would.</p>
          <FormEnd
            problem={undefined}
            isRunning={isRunning}
            what={`Send ${call.method}`}
            onWish={() => perform(wish)}
            onClose={() => setWish(undefined)}
          />
        </Dialog>
      )}
      {answer && (
        <div role="status">
          <p>
            <b>{answer.status}</b> in {answer.durationMs} ms
          </p>
          {answer.text !== '' && <JsonView value={answer.text} label="The answer" />}
          <AnswerHeaders headers={answer.headers} isOpen={answer.status >= 400} />
        </div>
      )}
    </section>
  );
}

function AnswerHeaders({
  headers,
  isOpen,
}: {
  readonly headers: Headers;
  /** Of a refusal, whose headers have the time of the next try. */
  readonly isOpen: boolean;
}) {
  return (
    <details open={isOpen}>
      <summary>Headers of the answer</summary>
      <dl className="pairs">
        {[...headers].map(([name, value]) => (
          <div key={name}>
            <dt>{name}</dt>
            <dd>{visibleText(value)}</dd>
          </div>
        ))}
      </dl>
    </details>
  );
}
