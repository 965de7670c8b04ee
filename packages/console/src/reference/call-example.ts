/** Values of a call in a sample: of its examples in the document, else values that its schemas admit. Pure. */
import type { SampleCall } from '../sentences/code-samples.ts';
import { alternativesOf, type Resolve, type Schema } from '../sentences/schema-fields.ts';
import {
  bodyOf,
  type DescribedCall,
  type Document,
  type Parameter,
  parametersOf,
  resolverOf,
} from './described-call.ts';

const DEPTH_MAX = 6;

/** A value that the schema admits, from its examples if it has any. */
export function exampleOf(given: Schema, resolve: Resolve, depth = 0): unknown {
  const schema = resolve(given);
  const known = knownOf(schema);
  if (known !== undefined) return known;
  if (depth > DEPTH_MAX) return null;
  const inner = (part: Schema): unknown => exampleOf(part, resolve, depth + 1);
  if (schema.allOf) return Object.assign({}, ...schema.allOf.map(inner)) as object;
  if (!schema.properties) {
    // A part with an example is nearer to a real call than the first one.
    const parts = schema.anyOf ?? schema.oneOf ?? [];
    const first = parts.find((part) => resolve(part).examples) ?? parts[0];
    if (first) return inner(first);
  }
  const [type] = [schema.type ?? 'object'].flat();
  switch (type) {
    case 'string':
      return textOf(schema);
    case 'integer':
    case 'number':
      return Math.max(schema.minimum ?? 1, Math.min(1, schema.maximum ?? 1));
    case 'boolean':
      return false;
    case 'array':
      return schema.items ? [inner(schema.items)] : [];
    case 'null':
      return null;
    default:
      return Object.fromEntries(
        (schema.required ?? []).map((name) => [name, inner(schema.properties?.[name] ?? {})]),
      );
  }
}

/** As the document gives it. */
const knownOf = ({ examples, default: fallback, const: only, enum: values }: Schema): unknown =>
  examples?.[0] ?? fallback ?? only ?? values?.[0];

const TEXTS: Readonly<Record<string, string>> = {
  'date-time': '2026-03-01T12:00:00Z',
  date: '2026-03-01',
  email: 'ada@example.com',
  uri: 'https://example.com/',
  url: 'https://example.com/',
};

const textOf = ({ format = '', minLength = 0 }: Schema): string =>
  TEXTS[format] ?? 'example'.padEnd(minLength, 'x').slice(0, Math.max(minLength, 7));

/** A JSON value, or a text of another type. Neither: the call takes no body. */
export function exampleBody(
  call: DescribedCall,
  document: Document,
): Pick<SampleCall, 'body' | 'raw'> {
  const content = bodyOf(call);
  if (!content) return {};
  const { type, schema } = content;
  const example = content.example ?? exampleOf(schema, resolverOf(document));
  return type === 'application/json' ? { body: example } : { raw: { type, text: String(example) } };
}

/** A call with values in the places of its parameters. */
export interface FilledCall {
  readonly path: string;
  /** In capitals, for the values that the reader puts in. */
  readonly placeholders: readonly string[];
}

/** @param known - the reader's own value of a parameter; else empty. */
export function samplePath(
  call: DescribedCall,
  document: Document,
  known: (parameter: Parameter) => string,
): FilledCall {
  const placeholders: string[] = [];
  const valueOf = (parameter: Parameter): string => {
    const { name, in: place, required, schema = {}, example } = parameter;
    const own = known(parameter);
    if (own !== '' || (place !== 'path' && required !== true)) return own;
    const resolve = resolverOf(document);
    const given = example ?? knownOf(resolve(schema));
    if (given !== undefined) return typeof given === 'string' ? given : JSON.stringify(given);
    const isNumber = alternativesOf(schema, resolve).some(({ type }) => type === 'integer');
    // A guessed number is for reads: a pasted sample must not change an object that its reader did not choose.
    if (isNumber && call.method === 'GET') return String(exampleOf(schema, resolve));
    const placeholder = name.toUpperCase();
    placeholders.push(placeholder);
    return placeholder;
  };
  const values = new Map(
    parametersOf(call, document).map((each) => [each, valueOf(each)] as const),
  );
  const path = filledPath(call, [...values.keys()], (each) => values.get(each) ?? '');
  return { path, placeholders };
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
