/**
 * A JSON Schema in words: its fields with dots between levels, their types, and their bounds.
 *
 * The reference of the console and the API's page without scripts both print them. Code in a text is between grave accents. Pure.
 */

export interface Schema {
  readonly $ref?: string;
  readonly type?: string | readonly string[];
  readonly format?: string;
  readonly description?: string;
  readonly default?: unknown;
  readonly enum?: readonly unknown[];
  readonly const?: unknown;
  readonly properties?: Readonly<Record<string, Schema>>;
  readonly required?: readonly string[];
  readonly items?: Schema;
  readonly anyOf?: readonly Schema[];
  readonly oneOf?: readonly Schema[];
  readonly allOf?: readonly Schema[];
  readonly additionalProperties?: Schema | boolean;
  readonly minimum?: number;
  readonly maximum?: number;
  readonly minLength?: number;
  readonly maxLength?: number;
  readonly minItems?: number;
  readonly maxItems?: number;
  readonly multipleOf?: number;
  readonly minProperties?: number;
  readonly maxProperties?: number;
  readonly pattern?: string;
  readonly examples?: readonly unknown[];
}

/** The schema that a reference names. A page that links to named schemas leaves references as they are. */
export type Resolve = (schema: Schema) => Schema;
const asItIs: Resolve = (schema) => schema;

export interface SchemaField {
  readonly name: string;
  readonly field: Schema;
  readonly isRequired: boolean;
}

export const nameIn = (reference: string): string =>
  reference.slice(reference.lastIndexOf('/') + 1);

/** The alternatives of the value, each by itself. Beside a part with properties they are conditions. */
export function alternativesOf(given: Schema, resolve = asItIs): readonly Schema[] {
  const schema = resolve(given);
  const whole = [schema, ...(schema.allOf ?? [])].find(({ properties }) => properties);
  if (whole) return [whole];
  const parts = schema.anyOf ?? schema.oneOf;
  return parts ? parts.flatMap((part) => alternativesOf(part, resolve)) : [schema];
}

/**
 * Fields of all levels. `[]` stands for the entries of a list, and `*` for any name. A field of several forms is required if
 * each form requires it.
 */
export function fieldsOf(schema: Schema, resolve = asItIs): SchemaField[] {
  return innerFieldsOf(schema, '', resolve, []);
}

/** @param open - the schemas around this one: a schema may contain itself. */
function innerFieldsOf(
  given: Schema,
  prefix: string,
  resolve: Resolve,
  open: readonly Schema[],
): SchemaField[] {
  const schema = resolve(given);
  if (open.includes(schema)) return [];
  const within = [...open, schema];
  const own = ownFieldsOf(schema, resolve).flatMap(({ name: key, field, isRequired }) => {
    const name = prefix === '' ? key : `${prefix}.${key}`;
    return [{ name, field, isRequired }, ...innerFieldsOf(field, name, resolve, within)];
  });
  const ofEntries = alternativesOf(schema, resolve).flatMap(
    ({ items, additionalProperties: others }) => [
      ...(items ? innerFieldsOf(items, `${prefix}[]`, resolve, within) : []),
      ...(typeof others === 'object'
        ? innerFieldsOf(others, prefix === '' ? '*' : `${prefix}.*`, resolve, within)
        : []),
    ],
  );
  const names = new Set<string>();
  return [...own, ...ofEntries].filter(({ name }) => {
    const isNew = !names.has(name);
    names.add(name);
    return isNew;
  });
}

/** Of the first level, of all parts and forms. */
function ownFieldsOf(given: Schema, resolve: Resolve): SchemaField[] {
  const { properties, required = [], allOf, anyOf, oneOf } = resolve(given);
  if (properties)
    return Object.entries(properties).map(([name, field]) => ({
      name,
      field,
      isRequired: required.includes(name),
    }));
  const parts = (allOf ?? anyOf ?? oneOf ?? []).map((part) => ownFieldsOf(part, resolve));
  // A form without fields is no object, such as null.
  const forms = parts.filter((part) => part.length > 0);
  return [...Map.groupBy(parts.flat(), ({ name }) => name)].map(([name, same]) => ({
    name,
    field: allOf ? (same[0]?.field ?? {}) : eitherOf(same.map(({ field }) => field)),
    isRequired: allOf
      ? same.some(({ isRequired }) => isRequired)
      : same.length === forms.length && same.every(({ isRequired }) => isRequired),
  }));
}

/** One field whose schemas differ between the forms of its object. */
function eitherOf(schemas: readonly Schema[]): Schema {
  const different = [...new Map(schemas.map((each) => [JSON.stringify(each), each])).values()];
  const [first = {}] = different;
  if (different.length < 2) return first;
  const description = different.find((each) => each.description !== undefined)?.description;
  return { ...(description !== undefined && { description }), anyOf: different };
}

/**
 * `list of string or null`
 *
 * @param wordOf - the word for a reference, or for the type of a value without parts
 */
export function typeText(schema: Schema, wordOf: (schema: Schema) => string = typeWord): string {
  if (schema.$ref !== undefined) return wordOf(schema);
  const [whole = {}, ...others] = alternativesOf(schema);
  if (others.length > 0)
    return [...new Set([whole, ...others].map((each) => typeText(each, wordOf)))].join(' or ');
  if (schema.allOf) return schema.allOf.map((each) => typeText(each, wordOf)).join(' and ');
  if (schema.items) return `list of ${typeText(schema.items, wordOf)}`;
  return wordOf(schema);
}

/** `string (date-time)` */
export function typeWord({ type, format, properties, ...rest }: Schema): string {
  const ofValues = [...new Set(valuesOf(rest).map((value) => typeof value))];
  const types = type ?? (properties ? 'object' : ofValues);
  const words = [types].flat().join(' or ') || 'any';
  return format === undefined ? words : `${words} (${format})`;
}

const valuesOf = ({ enum: values, const: value }: Schema): readonly unknown[] =>
  values ?? (value === undefined ? [] : [value]);

/** Bounds, then the allowed values if each alternative lists them. */
export function boundsOf(schema: Schema, resolve = asItIs): string[] {
  const alternatives = alternativesOf(schema, resolve);
  const entries = alternatives.flatMap(({ items }) =>
    items ? alternativesOf(items, resolve) : [],
  );
  return [
    ...new Set([
      ...alternatives.flatMap((each) => ownBoundsOf(each, resolve)),
      ...valuesText('one of', alternatives),
      ...valuesText('each one of', entries),
    ]),
  ];
}

function valuesText(words: string, alternatives: readonly Schema[]): string[] {
  const lists = alternatives.filter(({ type }) => type !== 'null').map(valuesOf);
  if (lists.length === 0 || lists.some((values) => values.length === 0)) return [];
  const values = [...new Set(lists.flat())].map((value) => `\`${String(value)}\``);
  return [`${words} ${values.join(', ')}`];
}

/** In words; bounds beyond JavaScript's safe integers are left out. */
function ownBoundsOf(schema: Schema, resolve: Resolve): string[] {
  const { minimum = -Infinity, maximum = Infinity, minLength, maxLength } = schema;
  const { minItems, maxItems, items, minProperties, maxProperties } = schema;
  const { type, format, pattern, multipleOf } = schema;
  const isAnyNumber = (bound: number): boolean => Math.abs(bound) >= Number.MAX_SAFE_INTEGER;
  return [
    between(
      isAnyNumber(minimum) ? undefined : minimum,
      isAnyNumber(maximum) ? undefined : maximum,
      '',
    ),
    between(minLength || undefined, maxLength, ' characters'),
    between(minItems || undefined, maxItems, ' entries'),
    between(minProperties || undefined, maxProperties, ' members'),
    multipleOf === undefined ? '' : `a multiple of ${multipleOf}`,
    // The pattern of a format repeats its name, and the pattern of a number repeats its notation.
    pattern === undefined || format !== undefined || type !== 'string'
      ? ''
      : `matches \`${pattern}\``,
    ...(items
      ? alternativesOf(items, resolve)
          .flatMap((each) => (each.items ? [] : ownBoundsOf(each, resolve)))
          .map((bound) => `each ${bound}`)
      : []),
  ].filter((bound) => bound !== '');
}

function between(least: number | undefined, most: number | undefined, unit: string): string {
  if (least !== undefined && most !== undefined) return `${least} to ${most}${unit}`;
  if (most !== undefined) return `at most ${most}${unit}`;
  return least === undefined ? '' : `at least ${least}${unit}`;
}
