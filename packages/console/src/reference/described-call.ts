/** The operations of `/openapi.json` as the reference shows them. Pure. */
import type { SampleCall } from '../sentences/code-samples.ts';
import {
  boundsOf,
  fieldsOf,
  nameIn,
  type Resolve,
  type Schema,
  type SchemaField,
  typeText,
  typeWord,
} from '../sentences/schema-fields.ts';

export interface Parameter {
  readonly name: string;
  readonly in: string;
  readonly required?: boolean;
  readonly description?: string;
  readonly example?: unknown;
  readonly schema?: Schema;
}

interface Content {
  readonly schema?: Schema;
  readonly example?: unknown;
}

interface Response {
  readonly $ref?: string;
  readonly description?: string;
  readonly content?: Readonly<Record<string, Content>>;
}

export interface Operation {
  readonly operationId: string;
  readonly tags?: readonly string[];
  readonly summary?: string;
  readonly description?: string;
  readonly parameters?: readonly (Parameter & { readonly $ref?: string })[];
  readonly requestBody?: {
    readonly required?: boolean;
    readonly content: Readonly<Record<string, Content>>;
  };
  readonly responses?: Readonly<Record<string, Response>>;
  readonly security?: readonly Readonly<Record<string, unknown>>[];
  /** Of intake. Absent: of the API. */
  readonly servers?: readonly { readonly url: string }[];
}

type Paths = Readonly<Record<string, Readonly<Record<string, Operation>>>>;

export interface Document {
  readonly paths: Paths;
  /** Requests to the endpoints of receivers, by event type. */
  readonly webhooks?: Paths;
  readonly components?: {
    readonly schemas?: Readonly<Record<string, Schema>>;
    readonly responses?: Readonly<Record<string, Response>>;
    readonly parameters?: Readonly<Record<string, Parameter>>;
  };
}

/** One call, with its place. */
export interface DescribedCall {
  readonly method: string;
  /** Of a delivery: its event type. */
  readonly path: string;
  readonly tag: string;
  /** Sluice sends it to the endpoint of a webhook. */
  readonly isDelivery: boolean;
  readonly operation: Operation;
}

/** In the order of the document. */
export const callsOf = ({ paths, webhooks = {} }: Document): DescribedCall[] =>
  [paths, webhooks].flatMap((part) =>
    Object.entries(part).flatMap(([path, methods]) =>
      Object.entries(methods)
        .filter(([, operation]) => operation?.operationId !== undefined)
        .map(([method, operation]) => ({
          method: method.toUpperCase(),
          path,
          tag: operation.tags?.[0] ?? 'other',
          isDelivery: part === webhooks,
          operation,
        })),
    ),
  );

/** As it stands in an address. */
export const slugOf = (tag: string): string => tag.toLowerCase().replaceAll(/[^a-z0-9]+/g, '-');

export const isOfIntake = ({ operation }: DescribedCall): boolean =>
  operation.servers !== undefined;

/** The schema that a reference to a component names. */
export const resolverOf =
  ({ components }: Document): Resolve =>
  (schema) =>
    schema.$ref === undefined ? schema : (components?.schemas?.[nameIn(schema.$ref)] ?? {});

export const parametersOf = ({ operation }: DescribedCall, document: Document): Parameter[] =>
  (operation.parameters ?? []).map((each) =>
    each.$ref === undefined ? each : (document.components?.parameters?.[nameIn(each.$ref)] ?? each),
  );

/** Of a body, or of an answer. */
export interface DescribedContent {
  readonly type: string;
  readonly schema: Schema;
  readonly example: unknown;
}

function contentIn(contents: Readonly<Record<string, Content>> | undefined) {
  const [first] = Object.entries(contents ?? {});
  if (!first) return undefined;
  const [type, { schema = {}, example }] = first;
  return { type, schema, example } satisfies DescribedContent;
}

/** JSON, if the call takes JSON. Undefined: it takes no body. */
export function bodyOf({ operation }: DescribedCall): DescribedContent | undefined {
  const { 'application/json': json, ...others } = operation.requestBody?.content ?? {};
  return contentIn(json ? { 'application/json': json } : others);
}

export interface DescribedAnswer {
  readonly status: string;
  readonly description: string;
  /** Undefined: it has no body. */
  readonly content: DescribedContent | undefined;
}

export const answersOf = ({ operation }: DescribedCall, document: Document): DescribedAnswer[] =>
  Object.entries(operation.responses ?? {}).map(([status, given]) => {
    const response =
      given.$ref === undefined ? given : document.components?.responses?.[nameIn(given.$ref)];
    return {
      status,
      description: response?.description ?? '',
      content: contentIn(response?.content),
    };
  });

/** Of all levels. A field without a description in its place has the description of its schema. */
export function describedFieldsOf(schema: Schema, document: Document): SchemaField[] {
  const resolve = resolverOf(document);
  return fieldsOf(schema, resolve).map(({ field, ...rest }) => {
    const description = field.description ?? resolve(field).description;
    return { ...rest, field: { ...field, ...(description !== undefined && { description }) } };
  });
}

/** `integer; 1 to 100`, with code between grave accents. */
export function boundsText(schema: Schema, document: Document): string {
  const { default: fallback } = schema;
  return [
    typeIn(schema, document),
    ...(fallback === undefined ? [] : [`default \`${JSON.stringify(fallback)}\``]),
    ...boundsOf(schema, resolverOf(document)),
  ].join('; ');
}

/** @param open - names of the schemas around this one: a schema may contain itself. */
const typeIn = (schema: Schema, document: Document, open: readonly string[] = []): string =>
  typeText(schema, (each) => {
    if (each.$ref === undefined) return typeWord(each);
    const name = nameIn(each.$ref);
    if (open.includes(name)) return name;
    return typeIn(resolverOf(document)(each), document, [...open, name]);
  });

/** By the scheme that the operation needs. */
export function authOf({ operation }: DescribedCall): Pick<SampleCall, 'auth' | 'variable'> {
  const { security = [{ app_key: [] }] } = operation;
  const [scheme] = security.flatMap((each) => Object.keys(each));
  switch (scheme) {
    case undefined:
      return { auth: 'none', variable: '' };
    case 'write_key':
      return { auth: 'basic', variable: 'SLUICE_WRITE_KEY' };
    case 'site_key':
      // A site id and its key, with a colon between.
      return { auth: 'pair', variable: 'SLUICE_SITE_KEY' };
    case 'app_key':
      return { auth: 'bearer', variable: 'SLUICE_KEY' };
    default:
      return { auth: 'bearer', variable: 'SLUICE_ACCOUNT_TOKEN' };
  }
}
