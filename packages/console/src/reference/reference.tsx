/**
 * One call of the API or of intake: samples in seven languages, its parameters and answers, and a form that tries it.
 */
import { useSession } from '../client/session.ts';
import { Samples } from '../parts/samples.tsx';
import { Empty } from '../parts/states.tsx';
import { Link, type Route } from '../routing/router.tsx';
import { visibleText } from '../sentences/visible-text.ts';
import { SAMPLE_LANGUAGES, type SampleLanguage, sampleOf } from '../sentences/code-samples.ts';
import {
  authOf,
  bodyFieldsOf,
  boundsText,
  callsOf,
  type DescribedCall,
  type Document,
  exampleBody,
  filledPath,
  isOfIntake,
  type Parameter,
  parametersOf,
  resolved,
  slugOf,
} from './described-call.ts';
import { TryCall } from './try-call.tsx';
import { WithDocument } from './with-document.tsx';

const LANGUAGES = Object.keys(SAMPLE_LANGUAGES);

export const referenceRoute: Route = {
  pattern: '/docs/:tag/:operation',
  title: ({ operation }) => operation ?? 'Reference',
  query: { language: LANGUAGES },
  screen: ({ place: { params, query } }) => (
    <WithDocument>
      {(document) => (
        <OneCall
          key={params['operation']}
          document={document}
          operationId={params['operation'] ?? ''}
          language={(query['language'] as SampleLanguage | undefined) ?? 'curl'}
        />
      )}
    </WithDocument>
  ),
};

function OneCall({
  document,
  operationId,
  language,
}: {
  readonly document: Document;
  readonly operationId: string;
  readonly language: SampleLanguage;
}) {
  const { account, intake_url: intakeUrl } = useSession();
  const call = callsOf(document).find((each) => each.operation.operationId === operationId);
  if (!call)
    return (
      <Empty title={`There is no call ${visibleText(operationId)}`}>
        <p>
          <Link to="/docs/all">All calls</Link>
        </p>
      </Empty>
    );
  const { method, path, tag, operation } = call;
  const parameters = parametersOf(call, document);
  const body = exampleBody(call, document);
  const known = (parameter: Parameter): string =>
    parameter.name === 'account_id' ? String(account.id) : '';
  const url = `${isOfIntake(call) ? intakeUrl : location.origin}${filledPath(call, parameters, known)}`;
  const sample = sampleOf(language, { method, url, ...authOf(call), body });
  return (
    <>
      <header className="title">
        <p className="above">
          <Link to={`/docs/${slugOf(tag)}`}>{tag}</Link>
        </p>
        <h1>{operation.summary ?? operationId}</h1>
        <p className="facts">
          <code>
            {method} {path}
          </code>
          <span>{operationId}</span>
        </p>
        {operation.description !== undefined && <p className="lead">{operation.description}</p>}
      </header>
      <Samples languages={SAMPLE_LANGUAGES} language={language} sample={sample} />
      {parameters.length > 0 && (
        <Fields
          title="Parameters"
          fields={parameters.map(({ name, required, description, schema, in: place }) => ({
            name,
            isRequired: required === true,
            text: `${place}; ${boundsText(schema, document)}`,
            description: description ?? schema?.description,
          }))}
        />
      )}
      <Body call={call} document={document} />
      <Answers call={call} document={document} />
      {isOfIntake(call) ? (
        <p className="faint">
          A call of intake needs a write key, which this page does not have: run the sample.
        </p>
      ) : (
        <TryCall
          call={call}
          document={document}
          parameters={parameters}
          body={body}
          known={known}
        />
      )}
    </>
  );
}

interface Field {
  readonly name: string;
  readonly isRequired: boolean;
  /** Allowed values. */
  readonly text: string;
  readonly description: string | undefined;
}

function Fields({ title, fields }: { readonly title: string; readonly fields: readonly Field[] }) {
  const id = `fields-${slugOf(title)}`;
  return (
    <section aria-labelledby={id}>
      <h2 id={id}>{title}</h2>
      <table className="list">
        <caption className="unseen">{title}</caption>
        <thead>
          <tr>
            <th scope="col">Name</th>
            <th scope="col">Allowed values</th>
            <th scope="col">Meaning</th>
          </tr>
        </thead>
        <tbody>
          {fields.map(({ name, isRequired, text, description }) => (
            <tr key={name}>
              <th scope="row" className="clip">
                <code>{name}</code>
                {isRequired && <span className="chip">required</span>}
              </th>
              <td className="clip">{text}</td>
              <td className="clip">{description ?? ''}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </section>
  );
}

function Body({ call, document }: { readonly call: DescribedCall; readonly document: Document }) {
  const content = call.operation.requestBody?.content ?? {};
  const [type, described] = Object.entries(content)[0] ?? [];
  if (type === undefined) return null;
  const fields = bodyFieldsOf(described?.schema, document);
  if (fields.length === 0) return null;
  return (
    <Fields
      title={`Body (${type})`}
      fields={fields.map(({ name, schema, isRequired }) => {
        const field = resolved(schema, document);
        return {
          name,
          isRequired,
          text: boundsText(field, document),
          description: schema.description ?? field.description,
        };
      })}
    />
  );
}

function Answers({
  call,
  document,
}: {
  readonly call: DescribedCall;
  readonly document: Document;
}) {
  const answers = Object.entries(call.operation.responses ?? {});
  return (
    <section aria-labelledby="answers">
      <h2 id="answers">Answers</h2>
      <dl className="pairs">
        {answers.map(([status, { description, $ref }]) => (
          <div key={status}>
            <dt>{status}</dt>
            <dd>
              {description ??
                document.components?.responses?.[$ref?.split('/').at(-1) ?? '']?.description ??
                ''}
            </dd>
          </div>
        ))}
      </dl>
    </section>
  );
}
