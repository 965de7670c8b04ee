/**
 * JSON Schema of an event type, prepared for `validate-payload.ts`.
 *
 * It refuses a schema whose keywords would have no effect or an unclear one. Bounds limit the cost of a payload's
 * check, and the memory that intake needs.
 */
import { isJsonLargerThan } from '../values/json-size.ts';
import { isJsonObject, type Json, type JsonObject } from '../values/json.ts';
import { NESTING_DEPTH_MAX } from '../operations/limits.ts';
import { readPattern, type LinearPattern } from './linear-pattern.ts';
import {
  contentOf,
  DIALECT,
  IN_PLACE_KEYWORDS,
  VALUE_TYPES,
  type KeywordContent,
} from './schema-keywords.ts';

const SCHEMA_SIZE_BYTES_MAX = 32 * 1_024;
/** Schemas within schemas. */
const SCHEMA_DEPTH_MAX = 32;
const SUBSCHEMA_COUNT_MAX = 1_000;
const SCHEMA_PATTERN_COUNT_MAX = 100;

/** A schema that may be used. */
export interface EventSchema {
  readonly root: JsonObject;
  /** By their text. */
  readonly patterns: ReadonlyMap<string, LinearPattern>;
  /** By the text of `$ref`. */
  readonly referred: ReadonlyMap<string, Json>;
  /** Whether a check must remember which members were looked at. */
  readonly hasUnevaluated: boolean;
}

export type SchemaOutcome =
  | { readonly outcome: 'read'; readonly schema: EventSchema }
  /** `pointer`: place in the schema (RFC 6901). */
  | { readonly outcome: 'refused'; readonly pointer: string; readonly message: string };

/** Never throws for a JSON value. */
export function readSchema(value: Json): SchemaOutcome {
  if (!isJsonObject(value)) return refused('', 'must be an object');
  if (isJsonLargerThan(value, SCHEMA_SIZE_BYTES_MAX))
    return refused('', `is larger than ${SCHEMA_SIZE_BYTES_MAX / 1_024} KB`);
  const reader = new SchemaReader(value);
  return (
    reader.read() ?? {
      outcome: 'read',
      schema: {
        root: value,
        patterns: reader.patterns,
        referred: reader.referred,
        hasUnevaluated: reader.hasUnevaluated,
      },
    }
  );
}

type Refusal = Extract<SchemaOutcome, { outcome: 'refused' }>;

const refused = (pointer: string, message: string): Refusal => ({
  outcome: 'refused',
  pointer,
  message,
});

/** A step of a pointer, escaped. */
export const pointerStep = (key: string | number): string =>
  `/${String(key).replaceAll('~', '~0').replaceAll('/', '~1')}`;

interface Place {
  readonly schema: Json;
  readonly pointer: string;
  readonly depth: number;
}

class SchemaReader {
  readonly patterns = new Map<string, LinearPattern>();
  readonly referred = new Map<string, Json>();
  hasUnevaluated = false;
  readonly #root: JsonObject;
  /** Each schema of the document, by its pointer. */
  readonly #schemas = new Map<string, Json>();
  readonly #anchors = new Map<string, Json>();
  /** Place of each `$ref`, by its text. */
  readonly #references = new Map<string, string>();
  /** Left to be looked at. */
  readonly #open: Place[] = [];

  constructor(root: JsonObject) {
    this.#root = root;
  }

  read(): Refusal | undefined {
    this.#open.push({ schema: this.#root, pointer: '', depth: 1 });
    for (let place = this.#open.pop(); place !== undefined; place = this.#open.pop()) {
      const refusal = this.#readOne(place);
      if (refusal) return refusal;
    }
    return this.#resolve() ?? this.#findCycle();
  }

  #readOne({ schema, pointer, depth }: Place): Refusal | undefined {
    if (typeof schema !== 'boolean' && !isJsonObject(schema))
      return refused(pointer, 'must be a schema: an object, true or false');
    if (depth > SCHEMA_DEPTH_MAX) return refused(pointer, `is deeper than ${SCHEMA_DEPTH_MAX}`);
    this.#schemas.set(pointer, schema);
    if (this.#schemas.size > SUBSCHEMA_COUNT_MAX)
      return refused(pointer, `is one of more than ${SUBSCHEMA_COUNT_MAX} schemas`);
    if (typeof schema === 'boolean') return undefined;
    for (const [keyword, value] of Object.entries(schema)) {
      const at = `${pointer}${pointerStep(keyword)}`;
      const content = contentOf(keyword);
      if (content === undefined) return refused(at, 'is no keyword that is supported');
      if (keyword.startsWith('unevaluated')) this.hasUnevaluated = true;
      const refusal = this.#readContent(content, value, at, depth);
      if (refusal) return refusal;
    }
    return undefined;
  }

  #readContent(
    content: KeywordContent,
    value: Json,
    at: string,
    depth: number,
  ): Refusal | undefined {
    const open = (schema: Json, pointer: string): void =>
      void this.#open.push({ schema, pointer, depth: depth + 1 });
    switch (content) {
      case 'schema':
        open(value, at);
        return undefined;
      case 'schemas':
        if (!Array.isArray(value) || value.length === 0)
          return refused(at, 'must be a list of at least one schema');
        for (const [index, schema] of value.entries()) open(schema, `${at}/${index}`);
        return undefined;
      case 'anything':
        return tooDeep(value, at);
      case 'values':
        return Array.isArray(value) ? tooDeep(value, at) : refused(at, 'must be a list');
      case 'schemas-by-name':
      case 'schemas-by-pattern':
        if (!isJsonObject(value)) return refused(at, 'must be an object of schemas');
        for (const [name, schema] of Object.entries(value)) {
          open(schema, `${at}${pointerStep(name)}`);
          const refusal =
            content === 'schemas-by-pattern'
              ? this.#readPattern(name, `${at}${pointerStep(name)}`)
              : undefined;
          if (refusal) return refusal;
        }
        return undefined;
      case 'pattern':
        return this.#readPattern(value, at);
      case 'reference':
        if (typeof value !== 'string' || !value.startsWith('#'))
          return refused(at, 'must begin with #: it cannot leave the document');
        this.#references.set(value, at);
        return undefined;
      case 'anchor':
        if (typeof value !== 'string' || !/^[A-Za-z_][-A-Za-z0-9._]*$/.test(value))
          return refused(at, 'must be a name');
        if (this.#anchors.has(value)) return refused(at, 'is there more than once');
        this.#anchors.set(value, this.#schemas.get(at.slice(0, -'/$anchor'.length)) ?? true);
        return undefined;
      case 'identity':
        return at === '/$id' && typeof value === 'string'
          ? undefined
          : refused(at, 'must be a text, and in the root of the schema');
      case 'dialect':
        return at === '/$schema' && (value === DIALECT || value === `${DIALECT}#`)
          ? undefined
          : refused(at, `must be ${DIALECT}, and in the root of the schema`);
      default:
        return unlikeContent(content, value, at);
    }
  }

  #readPattern(value: Json, at: string): Refusal | undefined {
    if (typeof value !== 'string') return refused(at, 'must be a text');
    if (this.patterns.has(value)) return undefined;
    if (this.patterns.size >= SCHEMA_PATTERN_COUNT_MAX)
      return refused(at, `is one of more than ${SCHEMA_PATTERN_COUNT_MAX} patterns`);
    const read = readPattern(value);
    if (read.outcome === 'refused') return refused(at, read.message);
    this.patterns.set(value, read.pattern);
    return undefined;
  }

  #resolve(): Refusal | undefined {
    for (const [reference, at] of this.#references) {
      const fragment = decoded(reference.slice(1));
      const schema =
        fragment === '' || fragment?.startsWith('/')
          ? this.#schemas.get(fragment)
          : this.#anchors.get(fragment ?? '');
      if (schema === undefined) return refused(at, 'refers to no schema of the document');
      this.referred.set(reference, schema);
    }
    return undefined;
  }

  /** A schema that asks itself of the same value again would be asked for ever. */
  #findCycle(): Refusal | undefined {
    const ended = new Set<Json>();
    for (const [reference, at] of this.#references) {
      const way = new Set<Json>();
      const returns = (schema: Json): boolean => {
        if (!isJsonObject(schema) || ended.has(schema)) return false;
        if (way.has(schema)) return true;
        way.add(schema);
        const isCycle = inPlaceOf(schema, this.referred).some(returns);
        way.delete(schema);
        ended.add(schema);
        return isCycle;
      };
      const schema = this.referred.get(reference);
      if (schema !== undefined && returns(schema))
        return refused(at, 'leads back to itself for the same value');
    }
    return undefined;
  }
}

function inPlaceOf(schema: JsonObject, referred: ReadonlyMap<string, Json>): Json[] {
  return Object.entries(schema).flatMap(([keyword, value]): Json[] => {
    if (!IN_PLACE_KEYWORDS.has(keyword)) return [];
    if (typeof value === 'string') return [referred.get(value) ?? true];
    if (Array.isArray(value)) return value;
    return keyword === 'dependentSchemas' && isJsonObject(value) ? Object.values(value) : [value];
  });
}

/** Keywords that hold no schema. */
function unlikeContent(content: KeywordContent, value: Json, at: string): Refusal | undefined {
  switch (content) {
    case 'type': {
      const types = Array.isArray(value) ? value : [value];
      const areTypes = types.every((type) => typeof type === 'string' && VALUE_TYPES.has(type));
      return areTypes && types.length > 0
        ? undefined
        : refused(at, `must be one or more of ${[...VALUE_TYPES].join(', ')}`);
    }
    case 'count':
      return Number.isInteger(value) && (value as number) >= 0
        ? undefined
        : refused(at, 'must be an integer of at least 0');
    case 'number':
      return typeof value === 'number' ? undefined : refused(at, 'must be a number');
    case 'positive-number':
      return typeof value === 'number' && value > 0
        ? undefined
        : refused(at, 'must be a number above 0');
    case 'boolean':
      return typeof value === 'boolean' ? undefined : refused(at, 'must be true or false');
    case 'names':
      return areNames(value) ? undefined : refused(at, 'must be a list of texts');
    case 'names-by-name':
      return isJsonObject(value) && Object.values(value).every(areNames)
        ? undefined
        : refused(at, 'must be an object of lists of texts');
    default:
      return undefined;
  }
}

/** Values of payloads have no more levels, and thousands of them fill the stack of a reader. */
const tooDeep = (value: Json, at: string): Refusal | undefined =>
  isDeeperThan(value, NESTING_DEPTH_MAX)
    ? refused(at, `is nested deeper than ${NESTING_DEPTH_MAX} levels`)
    : undefined;

const isDeeperThan = (value: Json, levels: number): boolean =>
  typeof value === 'object' &&
  value !== null &&
  (levels === 0 || Object.values(value).some((each) => isDeeperThan(each, levels - 1)));

const areNames = (value: Json): boolean =>
  Array.isArray(value) && value.every((name) => typeof name === 'string');

/** As in a URI; undefined if it is malformed. */
function decoded(fragment: string): string | undefined {
  try {
    return decodeURIComponent(fragment);
  } catch {
    return undefined;
  }
}
