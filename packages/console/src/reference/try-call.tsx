/** Tries a call in the user's session: a read is sent at once, a change only after a question. */
import { type FormEvent, useState } from 'react';
import { send, RequestFailed } from '../client/request.ts';
import { useSession } from '../client/session.ts';
import { FormEnd, Refusal } from '../forms/form-end.tsx';
import { formText } from '../forms/form-text.ts';
import { useWork } from '../forms/use-work.ts';
import { Dialog } from '../parts/dialog.tsx';
import { JsonView } from '../parts/json-view.tsx';
import {
  boundsText,
  type DescribedCall,
  type Document,
  filledPath,
  type Parameter,
} from './described-call.ts';

interface Wish {
  readonly path: string;
  readonly body: unknown;
}

interface Answer {
  readonly status: number;
  readonly text: string;
  readonly durationMs: number;
}

/** A stream, and a file, are not for a form. */
const isTried = ({ path, operation }: DescribedCall): boolean =>
  path !== '/v1/stream' &&
  (operation.requestBody === undefined ||
    operation.requestBody.content['application/json'] !== undefined);

export function TryCall({
  call,
  parameters,
  body,
  document,
  known,
}: {
  readonly call: DescribedCall;
  readonly document: Document;
  readonly parameters: readonly Parameter[];
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
  const shown = parameters.filter(({ in: place }) => place === 'path' || place === 'query');
  if (!isTried(call)) return null;
  const isRead = call.method === 'GET';
  const perform = ({ path, body: given }: Wish): void => {
    setWish(undefined);
    void run(async () => {
      const startedAtMs = performance.now();
      const tell = (status: number, text: string): void =>
        setAnswer({ status, text, durationMs: Math.round(performance.now() - startedAtMs) });
      try {
        const sent = await send(path, {
          method: call.method as 'GET',
          workspaceId,
          ...(given !== undefined && { body: given }),
          ...(!isRead && { idempotencyKey: crypto.randomUUID() }),
        });
        tell(sent.status, await sent.text());
      } catch (error) {
        // A refusal is an answer too; a call without one has no result to show.
        if (!(error instanceof RequestFailed) || error.status === 0) throw error;
        tell(error.status, JSON.stringify({ code: error.code, message: error.message }));
      }
    });
  };
  const ask = (event: FormEvent<HTMLFormElement>): void => {
    event.preventDefault();
    const form = event.currentTarget;
    const path = filledPath(call, shown, ({ name }) => formText(form, `parameter-${name}`));
    const read = readJson(body === undefined ? '' : formText(form, 'body'));
    setWrong(read.problem);
    if (read.problem !== undefined) return;
    const given: Wish = { path, body: read.value };
    if (isRead) perform(given);
    else setWish(given);
  };
  return (
    <section className="card" aria-labelledby="try">
      <h2 id="try">Try it</h2>
      <p className="faint">It is sent in your session, for the chosen workspace.</p>
      <form onSubmit={ask}>
        {shown.map((parameter) => (
          <label key={parameter.name}>
            {parameter.name} <span className="faint">{boundsText(parameter.schema, document)}</span>
            <input
              name={`parameter-${parameter.name}`}
              autoComplete="off"
              spellCheck={false}
              required={parameter.in === 'path'}
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
        </div>
      )}
    </section>
  );
}

function readJson(text: string): { readonly value?: unknown; readonly problem?: string } {
  if (text === '') return {};
  try {
    return { value: JSON.parse(text) as unknown };
  } catch (error) {
    return { problem: `body: ${error instanceof Error ? error.message : 'is no JSON'}` };
  }
}
