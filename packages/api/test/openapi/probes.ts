/**
 * Values around the documented bounds of a JSON Schema.
 *
 * Each probe changes one field: to a value at a bound, within it, or beyond it.
 */

export interface JsonSchema {
  readonly $ref?: string;
  readonly type?: string | readonly string[];
  readonly const?: unknown;
  readonly enum?: readonly unknown[];
  readonly anyOf?: readonly JsonSchema[];
  readonly oneOf?: readonly JsonSchema[];
  readonly allOf?: readonly JsonSchema[];
  readonly properties?: Readonly<Record<string, JsonSchema>>;
  readonly required?: readonly string[];
  readonly items?: JsonSchema;
  readonly additionalProperties?: boolean | JsonSchema;
  readonly minItems?: number;
  readonly maxItems?: number;
  readonly minLength?: number;
  readonly maxLength?: number;
  readonly minimum?: number;
  readonly maximum?: number;
  readonly multipleOf?: number;
}

export interface Probe {
  /** JSON pointer of the field that was changed; empty for the whole. */
  readonly pointer: string;
  /** The value of the field, for a reader. */
  readonly what: string;
  /** The whole value. */
  readonly value: unknown;
}

export interface ProbeWorld {
  readonly resolve: (reference: string) => JsonSchema;
  /** Valid values by the name of the field; `name[]` is an entry of a list. A pattern has no example. */
  readonly samples: Readonly<Record<string, unknown>>;
}

type Put = (value: unknown) => unknown;
type Add = (what: string, value: unknown) => void;

const DEPTH_MAX = 6;
const INT32_MAX = 2_147_483_647;
/** Values of each type. */
export const OTHERS = {
  ...{ null: null, true: true, 'a text': 'x', 'a number': 3, 'a fraction': 0.5 },
  ...{ 'a list': [], 'an object': {} },
};
const TEXTS: Readonly<Record<string, string>> = {
  'no letter': '',
  'a letter': 'a',
  blanks: '   ',
  'two lines': 'a\nb',
  'a control character': 'a\u0007b',
  'other letters': 'Zoë 中 😀',
  '256 letters': 'a'.repeat(256),
  '1,025 letters': 'a'.repeat(1_025),
  '100,001 letters': 'a'.repeat(100_001),
};
const NUMBERS = [-1, 0, 1, 7, 1_000_001, INT32_MAX, INT32_MAX + 1, 2 ** 53 - 1, 2 ** 53];
const LENGTHS = [0, 1, 2, 11, 101, 1_001];

/** One value that the schema should take. */
export function sampleOf(schema: JsonSchema, world: ProbeWorld, name: string): unknown {
  if (name in world.samples) return world.samples[name];
  const whole = flat(schema, world);
  if (whole.const !== undefined) return whole.const;
  if (whole.enum) return whole.enum[0];
  const [choice] = choicesOf(whole);
  const [type] = typesOf(whole);
  if (choice && type === undefined) return sampleOf(choice, world, name);
  switch (type) {
    case 'object':
      return Object.fromEntries(
        (whole.required ?? []).map((each) => [
          each,
          sampleOf(whole.properties?.[each] ?? {}, world, each),
        ]),
      );
    case 'array':
      return Array.from({ length: whole.minItems ?? 0 }, () =>
        sampleOf(whole.items ?? {}, world, `${name}[]`),
      );
    case 'integer':
    case 'number':
      return Math.max(whole.minimum ?? 1, whole.multipleOf ?? 0);
    case 'boolean':
      return true;
    case 'null':
      return null;
    default:
      return 'a'.repeat(Math.max(1, whole.minLength ?? 1));
  }
}

/** @param name - of the whole, by which `samples` may have a value for it. */
export function probesOf(schema: JsonSchema, world: ProbeWorld, name: string): Probe[] {
  const probes: Probe[] = [];
  visit(schema, '', name, (value) => value, 0);
  return probes;

  function visit(part: JsonSchema, pointer: string, field: string, put: Put, depth: number): void {
    if (depth > DEPTH_MAX) return;
    const whole = flat(part, world);
    const add: Add = (what, value) => void probes.push({ pointer, what, value: put(value) });
    add('a sample', sampleOf(whole, world, field));
    for (const [what, value] of Object.entries(OTHERS)) add(what, value);
    for (const choice of choicesOf(whole)) visit(choice, pointer, field, put, depth + 1);
    const types = typesOf(whole);
    if (types.includes('string')) addTexts(whole, sampleOf(whole, world, field), add);
    if (types.includes('integer') || types.includes('number')) addNumbers(whole, add);
    if (types.includes('array')) {
      const { items = {} } = whole;
      addLists(whole, sampleOf(items, world, `${field}[]`), add);
      visit(items, `${pointer}/0`, `${field}[]`, (value) => put([value]), depth + 1);
    }
    if (types.includes('object')) visitFields(whole, pointer, field, put, depth);
  }

  function visitFields(
    whole: JsonSchema,
    pointer: string,
    field: string,
    put: Put,
    depth: number,
  ): void {
    const base = sampleOf(whole, world, field) as Record<string, unknown>;
    for (const [key, property] of Object.entries(whole.properties ?? {})) {
      const putField: Put = (value) => put({ ...base, [key]: value });
      visit(property, `${pointer}/${key}`, key, putField, depth + 1);
      const { [key]: _, ...others } = base;
      probes.push({ pointer: `${pointer}/${key}`, what: 'no value', value: put(others) });
    }
    const { additionalProperties: more } = whole;
    if (typeof more === 'object')
      visit(
        more,
        `${pointer}/*`,
        `${field}{}`,
        (value) => put({ ...base, some: value }),
        depth + 1,
      );
  }
}

function addTexts(
  { minLength, maxLength, enum: words }: JsonSchema,
  sample: unknown,
  add: Add,
): void {
  if (words) {
    for (const word of words) add(`the word ${String(word)}`, word);
    add('another word', 'no such word');
    return;
  }
  for (const [what, value] of Object.entries(TEXTS)) add(what, value);
  for (const length of around([minLength, maxLength]))
    add(`${length} letters`, String(sample).padEnd(length, 'a').slice(0, length));
}

function addNumbers({ minimum, maximum, multipleOf }: JsonSchema, add: Add): void {
  for (const value of new Set([...NUMBERS, ...around([minimum, maximum, multipleOf], -Infinity)]))
    add(String(value), value);
  if (multipleOf !== undefined) add(`2 × ${multipleOf}`, 2 * multipleOf);
}

/** Lists of different entries, if the entries are texts. */
function addLists({ items, minItems, maxItems }: JsonSchema, sample: unknown, add: Add): void {
  const isText = typeof sample === 'string' && !items?.enum;
  for (const length of new Set([...LENGTHS, ...around([minItems, maxItems])])) {
    const entries = Array.from({ length }, (_, index) => (isText ? `${sample}${index}` : sample));
    add(`${length} entries`, entries);
  }
}

/** Each bound with its neighbours. */
const around = (bounds: readonly (number | undefined)[], least = 0): number[] =>
  bounds
    .filter((bound) => bound !== undefined)
    .flatMap((bound) => [bound - 1, bound, bound + 1])
    .filter((each) => each >= least);

/** The schema with its reference resolved, and with its parts that hold together. */
function flat(schema: JsonSchema, world: ProbeWorld): JsonSchema {
  const { $ref, allOf = [], ...own } = schema;
  const pointed = $ref === undefined ? {} : flat(world.resolve($ref), world);
  return Object.assign({}, pointed, ...allOf.map((each) => flat(each, world)), own) as JsonSchema;
}

const choicesOf = ({ anyOf, oneOf }: JsonSchema): readonly JsonSchema[] => anyOf ?? oneOf ?? [];

const typesOf = ({ type, properties }: JsonSchema): readonly string[] =>
  typeof type === 'string' ? [type] : (type ?? (properties ? ['object'] : []));
