/**
 * Keywords of JSON Schema 2020-12 for event types, and their content.
 *
 * Any other keyword is refused. The specification would ignore it, and a misspelt `requierd` would then go unnoticed.
 *
 * Left out are references that leave the document or are found while it runs (`$id` below the root, `$dynamicRef`), and
 * keywords of other versions and of OpenAPI. `format` is an annotation, as in the specification, and is not checked.
 */

export type KeywordContent =
  /** One schema, a list of them, or an object of them by name. */
  | 'schema'
  | 'schemas'
  | 'schemas-by-name'
  | 'schemas-by-pattern'
  | 'type'
  | 'count'
  | 'number'
  | 'positive-number'
  | 'boolean'
  | 'names'
  | 'names-by-name'
  | 'pattern'
  | 'reference'
  | 'anchor'
  /** A list of any values. */
  | 'values'
  /** Has no effect on validity. */
  | 'anything'
  /** Only in the root. */
  | 'identity'
  | 'dialect';

const KEYWORDS: ReadonlyMap<string, KeywordContent> = new Map(
  Object.entries({
    dialect: ['$schema'],
    identity: ['$id'],
    reference: ['$ref'],
    anchor: ['$anchor'],
    'schemas-by-name': ['$defs', 'definitions', 'properties', 'dependentSchemas'],
    anything: [
      '$comment',
      'const',
      'title',
      'description',
      'default',
      'examples',
      'deprecated',
      'readOnly',
      'writeOnly',
      'format',
      'contentEncoding',
      'contentMediaType',
      'contentSchema',
    ],
    type: ['type'],
    values: ['enum'],
    schemas: ['allOf', 'anyOf', 'oneOf', 'prefixItems'],
    schema: [
      'not',
      'if',
      'then',
      'else',
      'additionalProperties',
      'unevaluatedProperties',
      'propertyNames',
      'items',
      'unevaluatedItems',
      'contains',
    ],
    'schemas-by-pattern': ['patternProperties'],
    names: ['required'],
    'names-by-name': ['dependentRequired'],
    count: [
      'minProperties',
      'maxProperties',
      'minContains',
      'maxContains',
      'minItems',
      'maxItems',
      'minLength',
      'maxLength',
    ],
    boolean: ['uniqueItems'],
    pattern: ['pattern'],
    number: ['minimum', 'maximum', 'exclusiveMinimum', 'exclusiveMaximum'],
    'positive-number': ['multipleOf'],
  } satisfies Record<KeywordContent, string[]>).flatMap(([content, keywords]) =>
    keywords.map((keyword) => [keyword, content as KeywordContent] as const),
  ),
);

/** Undefined for an unknown keyword. Names that begin with `x-` are free for any use. */
export const contentOf = (keyword: string): KeywordContent | undefined =>
  KEYWORDS.get(keyword) ?? (keyword.startsWith('x-') ? 'anything' : undefined);

/** Those whose schemas are about the same value as the schema that they stand in. */
export const IN_PLACE_KEYWORDS: ReadonlySet<string> = new Set([
  '$ref',
  'allOf',
  'anyOf',
  'oneOf',
  'not',
  'if',
  'then',
  'else',
  'dependentSchemas',
]);

export const VALUE_TYPES: ReadonlySet<string> = new Set([
  'null',
  'boolean',
  'object',
  'array',
  'number',
  'integer',
  'string',
]);

export const DIALECT = 'https://json-schema.org/draft/2020-12/schema';
