/** Tables of a call: its parameters, the fields of its body, and the fields of its answers. */
import { ListTable } from '../parts/list-table.tsx';
import { Fragment } from 'react';
import { alternativesOf, type Schema } from '../sentences/schema-fields.ts';
import {
  answersOf,
  bodyOf,
  boundsText,
  type DescribedAnswer,
  type DescribedCall,
  describedFieldsOf,
  type Document,
  parametersOf,
  resolverOf,
} from './described-call.ts';
import { Prose } from './prose.tsx';

interface CallProps {
  readonly call: DescribedCall;
  readonly document: Document;
}

export function Parameters({ call, document }: CallProps) {
  const parameters = parametersOf(call, document);
  if (parameters.length === 0) return null;
  return (
    <section aria-labelledby="parameters">
      <h2 id="parameters">Parameters</h2>
      <Table
        title="Parameters"
        rows={parameters.map(({ name, required, description, schema = {}, in: place }) => ({
          name,
          isRequired: required === true,
          text: `${place}; ${boundsText(schema, document)}`,
          description: description ?? schema.description,
        }))}
      />
    </section>
  );
}

export function Body({ call, document }: CallProps) {
  const body = bodyOf(call);
  if (!body) return null;
  return (
    <section aria-labelledby="body">
      <h2 id="body">Body ({body.type})</h2>
      <Fields title={`Body (${body.type})`} schema={body.schema} document={document} />
    </section>
  );
}

/** A success with its fields; refusals by status, then the fields that several of them have in common. */
export function Answers({ call, document }: CallProps) {
  const answers = answersOf(call, document);
  const successes = answers.filter(({ status }) => status.startsWith('2'));
  const refusals = Map.groupBy(
    answers.filter((answer) => !successes.includes(answer) && answer.content),
    ({ content }) => JSON.stringify(content?.schema),
  );
  return (
    <section aria-labelledby="answers">
      <h2 id="answers">Answers</h2>
      <dl className="pairs">
        {answers.map(({ status, description }) => (
          <div key={status}>
            <dt>{status}</dt>
            <dd>
              <Prose text={description} />
            </dd>
          </div>
        ))}
      </dl>
      {successes.map(({ status, content }) => (
        <Fragment key={status}>
          {content && (
            <>
              <h3>
                {status} ({content.type})
              </h3>
              <Fields
                title={`${status} (${content.type})`}
                schema={content.schema}
                document={document}
              />
            </>
          )}
        </Fragment>
      ))}
      {[...refusals.values()].map((same) => (
        <Refusals key={same[0]?.status} answers={same} document={document} />
      ))}
    </section>
  );
}

function Refusals({
  answers,
  document,
}: {
  readonly answers: readonly DescribedAnswer[];
  readonly document: Document;
}) {
  const { content } = answers[0] ?? {};
  if (!content) return null;
  const statuses = answers.map(({ status }) => status).join(', ');
  return (
    <details>
      <summary>
        Fields of {statuses} ({content.type})
      </summary>
      <Fields title={`${statuses} (${content.type})`} schema={content.schema} document={document} />
    </details>
  );
}

/** Of a schema; its type and bounds if it has no fields. */
function Fields({
  title,
  schema,
  document,
}: {
  /** For users of screen readers. */
  readonly title: string;
  readonly schema: Schema;
  readonly document: Document;
}) {
  const fields = describedFieldsOf(schema, document);
  const resolve = resolverOf(document);
  const refusesOthers = alternativesOf(schema, resolve).some(
    ({ additionalProperties: others }) => others === false,
  );
  const { description } = resolve(schema);
  return (
    <>
      {description !== undefined && (
        <p>
          <Prose text={description} />
        </p>
      )}
      {fields.length === 0 && (
        <p>
          <Prose text={boundsText(schema, document)} />
        </p>
      )}
      {fields.length > 0 && (
        <Table
          title={title}
          rows={fields.map(({ name, field, isRequired }) => ({
            name,
            isRequired,
            text: boundsText(field, document),
            description: field.description,
          }))}
        />
      )}
      {refusesOthers && <p>Other fields are refused.</p>}
    </>
  );
}

interface Row {
  readonly name: string;
  readonly isRequired: boolean;
  /** Type and allowed values. */
  readonly text: string;
  readonly description: string | undefined;
}

function Table({ title, rows }: { readonly title: string; readonly rows: readonly Row[] }) {
  return (
    <ListTable caption={title} heads={['Name', 'Allowed values', 'Meaning']}>
      {rows.map(({ name, isRequired, text, description = '' }) => (
        <tr key={name}>
          <th scope="row" className="clip">
            <code>{name}</code>
            {isRequired && <span className="chip">required</span>}
          </th>
          <td className="clip">
            <Prose text={text} />
          </td>
          <td className="clip">
            <Prose text={description} />
          </td>
        </tr>
      ))}
    </ListTable>
  );
}
