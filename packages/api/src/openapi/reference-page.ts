/**
 * The reference page: one self-contained HTML page made from the OpenAPI document, readable without
 * a network and without scripts. A viewer library would bring megabytes for the same lists.
 *
 * Everything that comes from the document is escaped. Pure.
 */
import {
  alternativesOf,
  boundsOf,
  fieldsOf,
  nameIn,
  type Schema,
  typeText,
  typeWord,
} from '@sluice/console/sentences/schema-fields';
import { PROBLEMS } from '../http/problem.ts';
import { credentialsTable, credentialsText, type Credentials } from './reference-credentials.ts';
import { escape, prose, table } from './reference-markup.ts';

interface Parameter {
  readonly name: string;
  readonly in: string;
  readonly required?: boolean;
  readonly description?: string;
  readonly schema: Schema;
}

type Content = Readonly<Record<string, { readonly schema?: Schema; readonly example?: unknown }>>;

export interface RequestBody {
  readonly required?: boolean;
  readonly content: Content;
}

export interface ApiOperation {
  readonly operationId?: string;
  readonly tags?: readonly string[];
  readonly summary?: string;
  readonly description?: string;
  readonly parameters?: readonly Parameter[];
  readonly requestBody?: RequestBody;
  /** Alternatives. Absent: as the document has it. */
  readonly security?: Credentials['security'];
  readonly responses?: Readonly<
    Record<string, { readonly description: string; readonly content?: Content }>
  >;
}

/** The parts of an OpenAPI 3.1 document that the page reads. */
export interface ApiDocument {
  readonly info: {
    readonly title: string;
    readonly version: string;
    readonly description?: string;
  };
  readonly paths: Readonly<Record<string, Readonly<Record<string, ApiOperation>>>>;
  /** Bodies of posts to receivers, by event type. */
  readonly webhooks?: Readonly<Record<string, Readonly<Record<string, ApiOperation>>>>;
  readonly tags?: readonly { readonly name: string; readonly description?: string }[];
  readonly security?: Credentials['security'];
  readonly components?: {
    readonly schemas?: Readonly<Record<string, Schema>>;
    readonly securitySchemes?: Credentials['schemes'];
  };
}

/** The page holds text and one inline style; it may not load, run, frame or send anything. */
export const CONTENT_SECURITY_POLICY =
  "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

const STYLE = `
body{font:16px/1.5 system-ui,sans-serif;overflow-wrap:break-word;max-width:60rem;margin:2rem auto;padding:0 1rem;color:#1c2430;background:#fff}
code{font:14px ui-monospace,monospace;overflow-wrap:anywhere}h2{margin-top:3rem;border-top:1px solid #d5dbe3;padding-top:1rem}
h2 b{color:#1257a8}table{border-collapse:collapse;width:100%}th,td{text-align:left;vertical-align:top;padding:.25rem .5rem;border-bottom:1px solid #e6eaf0}
th{font-weight:600}nav li{list-style:none}nav ul{padding:0}summary{cursor:pointer;padding:.25rem 0}.wide{overflow-x:auto}pre{overflow-x:auto;padding:.5rem;border:1px solid #d5dbe3}
@media(prefers-color-scheme:dark){body{background:#14181e;color:#dfe5ec}h2 b{color:#7db4ff}h2,th,td,pre{border-color:#333c47}a{color:#7db4ff}}`;

interface NamedOperation {
  readonly path: string;
  readonly method: string;
  readonly operation: ApiOperation;
}

/** Renders the page. */
export function renderReferencePage(document: ApiDocument): string {
  const { title, version, description } = document.info;
  const schemas = document.components?.schemas ?? {};
  const groups = groupsOf(document);
  return [
    `<!doctype html><html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width">`,
    `<title>${escape(title)}</title><style>${STYLE}</style></head><body>`,
    `<header><h1>${escape(title)} ${escape(version)}</h1><p>${prose(description)}</p>`,
    `<p>The same as a machine reads it: <a href="/openapi.json">/openapi.json</a></p></header>`,
    `<nav aria-label="Operations">${groups.map(renderGroup).join('')}</nav><main>`,
    ...groups.flatMap(({ operations }) =>
      operations.map((each) =>
        renderOperation(each, schemas, each.operation.security ?? document.security),
      ),
    ),
    ...Object.entries(schemas).map(([name, schema]) => renderNamedSchema(name, schema)),
    credentialsTable(document.components?.securitySchemes ?? {}),
    `<h2 id="errors">Error codes</h2>`,
    table(
      ['status', 'code', 'meaning'],
      Object.entries(PROBLEMS).map(([code, { status, meaning }]) => [
        String(status),
        `<code>${code}</code>`,
        prose(meaning),
      ]),
    ),
    `</main></body></html>`,
  ].join('\n');
}

interface Group {
  readonly name: string;
  readonly description: string | undefined;
  readonly operations: readonly NamedOperation[];
}

/** By the first tag, in the order of the document's tags; operations without a tag are last. */
function groupsOf({ paths, webhooks = {}, tags = [] }: ApiDocument): readonly Group[] {
  const all = [...operationsOf(paths), ...operationsOf(webhooks)];
  const isOf = (name: string | undefined) =>
    all.filter(({ operation }) => operation.tags?.[0] === name);
  return [...tags, { name: undefined, description: undefined }]
    .map(({ name, description }) => ({
      name: name ?? 'others',
      description,
      operations: isOf(name),
    }))
    .filter(({ operations }) => operations.length > 0);
}

const operationsOf = (paths: ApiDocument['paths']): NamedOperation[] =>
  Object.entries(paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, operation]) => ({
      path,
      method: method.toUpperCase(),
      operation,
    })),
  );

const renderGroup = ({ name, description, operations }: Group): string =>
  `<details><summary><b>${escape(name)}</b> ${prose(description)}</summary><ul>${operations
    .map(
      ({ method, path, operation }) =>
        `<li><a href="#${anchor(method, path)}"><code>${method} ${escape(path)}</code></a> ${prose(operation.summary)}</li>`,
    )
    .join('')}</ul></details>`;

function renderOperation(
  { method, path, operation }: NamedOperation,
  schemas: Readonly<Record<string, Schema>>,
  security: Credentials['security'],
): string {
  const parameters = operation.parameters ?? [];
  const content = operation.requestBody?.content;
  return [
    `<h2 id="${anchor(method, path)}"><b>${method}</b> <code>${escape(path)}</code></h2>`,
    `<p>${prose(operation.summary)}</p>`,
    operation.description === undefined ? '' : `<p>${prose(operation.description)}</p>`,
    credentialsText(security),
    parameters.length === 0
      ? ''
      : table(
          ['parameter', 'in', 'type', 'meaning'],
          parameters.map((parameter) => [
            `<code>${escape(parameter.name)}</code>`,
            parameter.in,
            typeName(parameter.schema),
            describe(parameter.schema, parameter.required === true, parameter.description),
          ]),
        ),
    renderBody(content, schemas),
    `<h3>Answers</h3>`,
    table(
      ['status', 'body', 'meaning'],
      Object.entries(operation.responses ?? {}).map(([status, response]) => {
        const schema = firstSchema(response.content);
        return [status, schema ? typeName(schema) : 'none', prose(response.description)];
      }),
    ),
    ...Object.entries(operation.responses ?? {}).map(([status, response]) => {
      const schema = firstSchema(response.content);
      return schema?.properties ? `<h3>${status}</h3>${renderSchema(schema)}` : '';
    }),
  ].join('');
}

/** Its other types have schemas with names. */
function renderBody(
  content: Content | undefined,
  schemas: Readonly<Record<string, Schema>>,
): string {
  const body = firstSchema(content);
  if (!body) return '';
  const others = Object.entries(content ?? {})
    .slice(1)
    .map(
      ([type, { schema = {} }]) => `<p>Or <code>${escape(type)}</code>: ${typeName(schema)}</p>`,
    );
  return [
    `<h3>Body</h3>${renderSchema(body)}`,
    ...others,
    renderExamples(body, content, schemas),
  ].join('');
}

const renderNamedSchema = (name: string, schema: Schema): string =>
  `<h2 id="schema-${escape(name)}">${escape(name)}</h2><p>${prose(schema.description)}</p>${renderSchema(schema)}`;

function renderSchema(schema: Schema): string {
  const fields = fieldsOf(schema);
  if (fields.length === 0) {
    const bounds = describe(schema, false, undefined);
    return `<p>${typeName(schema)}${bounds === '' ? '' : `; ${bounds}`}</p>`;
  }
  return [
    table(
      ['field', 'type', 'meaning'],
      fields.map(({ name, field, isRequired }) => [
        `<code>${escape(name)}</code>`,
        typeName(field),
        describe(field, isRequired, field.description),
      ]),
    ),
    alternativesOf(schema).some((each) => each.additionalProperties === false)
      ? '<p>Other fields are refused.</p>'
      : '',
  ].join('');
}

/** Examples of the schema, or of the whole body: of intake's calls, several of which share a schema. */
function renderExamples(
  schema: Schema,
  content: Content | undefined,
  schemas: Readonly<Record<string, Schema>>,
): string {
  const ofBody = Object.values(content ?? {})[0]?.example;
  const examples = alternativesOf(schema).flatMap((each) =>
    each.$ref === undefined ? (each.examples ?? []) : (schemas[nameIn(each.$ref)]?.examples ?? []),
  );
  return [...(ofBody === undefined ? [] : [ofBody]), ...examples]
    .map((example) => {
      const text =
        typeof example === 'string' ? example.trimEnd() : JSON.stringify(example, null, 2);
      return `<pre><code>${escape(text)}</code></pre>`;
    })
    .join('');
}

/** A reference links to its schema. */
const typeName = (schema: Schema): string =>
  typeText(schema, (each) => {
    if (each.$ref === undefined) return escape(typeWord(each));
    const name = escape(nameIn(each.$ref));
    return `<a href="#schema-${name}">${name}</a>`;
  });

function describe(schema: Schema, isRequired: boolean, description: string | undefined): string {
  return [
    isRequired ? '<b>required</b>' : '',
    schema.default === undefined
      ? ''
      : `default <code>${escape(JSON.stringify(schema.default))}</code>`,
    prose(description),
    ...boundsOf(schema).map(prose),
  ]
    .filter((part) => part !== '')
    .reduce(
      (text, part) => (text === '' ? part : `${text}${text.endsWith('.') ? ' ' : '; '}${part}`),
      '',
    );
}

const firstSchema = (content: Content | undefined): Schema | undefined =>
  Object.values(content ?? {})[0]?.schema;

const anchor = (method: string, path: string): string =>
  `${method}-${path}`.toLowerCase().replaceAll(/[^a-z0-9]+/g, '-');
