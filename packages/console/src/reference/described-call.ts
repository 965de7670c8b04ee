/** The operations of `/openapi.json` as the reference shows them. Pure. */
import type { SampleCall } from '../sentences/code-samples.ts';

export interface Schema {
  readonly $ref?: string;
  readonly type?: string | readonly string[];
  readonly format?: string;
  readonly description?: string;
  readonly default?: unknown;
  readonly enum?: readonly unknown[];
  readonly properties?: Readonly<Record<string, Schema>>;
  readonly required?: readonly string[];
  readonly items?: Schema;
  readonly anyOf?: readonly Schema[];
  readonly allOf?: readonly Schema[];
  readonly minimum?: number;
  readonly maximum?: number;
  readonly minLength?: number;
  readonly maxLength?: number;
  readonly maxItems?: number;
  readonly pattern?: string;
  readonly examples?: readonly unknown[];
}

export interface Parameter {
  readonly name: string;
  readonly in: string;
  readonly required?: boolean;
  readonly description?: string;
  readonly schema?: Schema;
}

interface Content {
  readonly schema?: Schema;
  readonly example?: unknown;
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
  readonly responses?: Readonly<
    Record<string, { readonly description?: string; readonly $ref?: string }>
  >;
  readonly security?: readonly Readonly<Record<string, unknown>>[];
  /** Of intake. Absent: of the API. */
  readonly servers?: readonly { readonly url: string }[];
}

export interface Document {
  readonly paths: Readonly<Record<string, Readonly<Record<string, Operation>>>>;
  readonly components?: {
    readonly schemas?: Readonly<Record<string, Schema>>;
    readonly responses?: Readonly<Record<string, { readonly description?: string }>>;
    readonly parameters?: Readonly<Record<string, Parameter>>;
  };
}

/** One call, with its place. */
export interface DescribedCall {
  readonly method: string;
  readonly path: string;
  readonly tag: string;
  readonly operation: Operation;
}

/** In the order of the document. */
export const callsOf = ({ paths }: Document): DescribedCall[] =>
  Object.entries(paths).flatMap(([path, methods]) =>
    Object.entries(methods)
      .filter(([, operation]) => operation?.operationId !== undefined)
      .map(([method, operation]) => ({
        method: method.toUpperCase(),
        path,
        tag: operation.tags?.[0] ?? 'other',
        operation,
      })),
  );

/** As it stands in an address. */
export const slugOf = (tag: string): string => tag.toLowerCase().replaceAll(/[^a-z0-9]+/g, '-');

export const isOfIntake = ({ operation }: DescribedCall): boolean =>
  operation.servers !== undefined;

/** The schema that a reference to a component names. */
export function resolved(schema: Schema | undefined, document: Document): Schema {
  if (schema?.$ref === undefined) return schema ?? {};
  const name = schema.$ref.split('/').at(-1) ?? '';
  return document.components?.schemas?.[name] ?? {};
}

export interface BodyField {
  readonly name: string;
  readonly schema: Schema;
  readonly isRequired: boolean;
}

/** The fields of a body, of all of its parts and forms. Of forms, a field is required if each requires it. */
export function bodyFieldsOf(given: Schema | undefined, document: Document): BodyField[] {
  const { properties, required = [], allOf, anyOf = [] } = resolved(given, document);
  if (properties)
    return Object.entries(properties).map(([name, schema]) => ({
      name,
      schema,
      isRequired: required.includes(name),
    }));
  const parts = (allOf ?? anyOf).map((part) => bodyFieldsOf(part, document));
  const requiring = (name: string) => (part: BodyField[]) =>
    part.some((field) => field.name === name && field.isRequired);
  const first = new Map(
    parts
      .flat()
      .toReversed()
      .map((field) => [field.name, field]),
  );
  // In the order of the parts, of which the first has the description.
  const names = new Set(parts.flat().map(({ name }) => name));
  return [...names].map((name) => ({
    ...(first.get(name) as BodyField),
    isRequired: allOf ? parts.some(requiring(name)) : parts.every(requiring(name)),
  }));
}

export const parametersOf = ({ operation }: DescribedCall, document: Document): Parameter[] =>
  (operation.parameters ?? []).map((each) =>
    each.$ref === undefined
      ? each
      : (document.components?.parameters?.[each.$ref.split('/').at(-1) ?? ''] ?? each),
  );

/** No bound if all numbers of JavaScript that are exact are within. */
const shownBound = (bound: number | undefined): number | undefined =>
  bound === undefined || Math.abs(bound) >= Number.MAX_SAFE_INTEGER ? undefined : bound;

/** `integer, 1 to 100` */
export function boundsText(given: Schema | undefined, document: Document): string {
  const schema = resolved(given, document);
  const { type, format, maxLength, maxItems, enum: values, anyOf, items } = schema;
  const [minimum, maximum] = [shownBound(schema.minimum), shownBound(schema.maximum)];
  if (values) return values.map(String).join(', ');
  if (anyOf) return anyOf.map((each) => boundsText(each, document)).join(' or ');
  const types = [type ?? 'any'].flat().join(' or ');
  return [
    format === undefined ? types : `${types} (${format})`,
    minimum !== undefined && maximum !== undefined && `${minimum} to ${maximum}`,
    minimum !== undefined && maximum === undefined && `from ${minimum}`,
    maxLength !== undefined && `at most ${maxLength} characters`,
    maxItems !== undefined && `at most ${maxItems} items`,
    resolved(items, document).enum && `each one of ${boundsText(items, document)}`,
  ]
    .filter((part) => typeof part === 'string')
    .join(', ');
}

const DEPTH_MAX = 6;

/** A value that the schema admits, from its examples if it has any. */
function exampleOf(given: Schema | undefined, document: Document, depth = 0): unknown {
  const schema = resolved(given, document);
  if (schema.examples?.[0] !== undefined) return schema.examples[0];
  if (schema.default !== undefined) return schema.default;
  if (schema.enum) return schema.enum[0];
  if (depth > DEPTH_MAX) return null;
  const [first] = schema.anyOf ?? [];
  if (first) return exampleOf(first, document, depth + 1);
  const [type] = [schema.type ?? 'object'].flat();
  switch (type) {
    case 'string':
      return schema.format === 'date-time' ? '2026-03-01T12:00:00Z' : '';
    case 'integer':
    case 'number':
      return schema.minimum ?? 1;
    case 'boolean':
      return false;
    case 'array':
      return schema.items ? [exampleOf(schema.items, document, depth + 1)] : [];
    case 'null':
      return null;
    default:
      return Object.fromEntries(
        (schema.required ?? []).map((name) => [
          name,
          exampleOf(schema.properties?.[name], document, depth + 1),
        ]),
      );
  }
}

/** Of the body; undefined if the call takes no JSON. */
export function exampleBody({ operation }: DescribedCall, document: Document): unknown {
  const content = operation.requestBody?.content['application/json'];
  if (!content) return undefined;
  return content.example ?? exampleOf(content.schema, document);
}

/** The path with its values, percent-encoded, and the query without empty values. */
export function filledPath(
  { path }: DescribedCall,
  parameters: readonly Parameter[],
  valueOf: (parameter: Parameter) => string,
): string {
  const query = new URLSearchParams();
  for (const parameter of parameters) {
    const value = valueOf(parameter);
    if (parameter.in === 'query' && value !== '') query.append(parameter.name, value);
  }
  const values = new Map(parameters.map((each) => [each.name, each]));
  const filled = path.replaceAll(/\{(\w+)\}/g, (whole, name: string) => {
    const parameter = values.get(name);
    const value = parameter ? valueOf(parameter) : '';
    return value === '' ? whole : encodeURIComponent(value);
  });
  return query.size === 0 ? filled : `${filled}?${query.toString()}`;
}

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
