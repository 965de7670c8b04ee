/**
 * Checks a payload against a schema (JSON Schema 2020-12; the keywords of `schema-keywords.ts`). An interpreter and not a
 * compiler: intake checks for all workspaces in one process, in which no text of a client may become code, and a
 * compiled schema takes as long as a thousand checks. Its work is counted (`step-budget.ts`).
 */
import { canonicalJson, isJsonObject, type Json, type JsonObject } from '../values/json.ts';
import { matchesPattern } from './linear-pattern.ts';
import {
  holdsCounts,
  holdsNumber,
  isAbove,
  isBelow,
  isOfType,
  namesIn,
  type Fail,
} from './plain-keywords.ts';
import { isSameJson } from './same-json.ts';
import { pointerStep, type EventSchema } from './schema-document.ts';
import type { StepBudget } from './step-budget.ts';

export interface Violation {
  /** In the payload (RFC 6901); empty for the payload itself. */
  readonly pointer: string;
  /** Continues a sentence that begins with the name of the place. */
  readonly message: string;
}

export type ValidationOutcome =
  | { readonly outcome: 'valid' }
  /** The first ones, at least one. */
  | { readonly outcome: 'invalid'; readonly violations: readonly Violation[] }
  /** The budget ended before it was known. */
  | { readonly outcome: 'too_complex' };

const VIOLATION_COUNT_MAX = 10;
/** Schemas that wait for one another: as deep as the stack of a small process bears, ten times. */
const DEPTH_MAX = 400;
/** Characters and values that cost as much to look at as one schema. */
const SIZE_A_STEP = 50;
/** Keys of an object, and names in a list of a schema: each is looked up. A step takes 0.6 µs. */
const MEMBERS_A_STEP = 5;
/** Characters of an object, a list or a number that is written as a text, to be compared. */
const TEXT_A_STEP = 10;

export function validatePayload(
  schema: EventSchema,
  payload: Json,
  budget: StepBudget,
): ValidationOutcome {
  const violations: Violation[] = [];
  const isValid = new Check(schema, budget).holds(schema.root, payload, '', violations);
  if (budget.isSpent) return { outcome: 'too_complex' };
  return isValid ? { outcome: 'valid' } : { outcome: 'invalid', violations };
}

/** Members of one value that a schema has evaluated; undefined if no keyword needs them. */
type Evaluated = Set<string | number> | undefined;

class Check {
  readonly #schema: EventSchema;
  readonly #budget: StepBudget;
  #depth = 0;

  constructor(schema: EventSchema, budget: StepBudget) {
    this.#schema = schema;
    this.#budget = budget;
  }

  /** @param violations - undefined: only whether it holds is asked. */
  holds(
    schema: Json,
    value: Json,
    pointer: string,
    violations: Violation[] | undefined,
    evaluated?: Evaluated,
  ): boolean {
    if (!this.#budget.take()) return true;
    if (this.#depth >= DEPTH_MAX) {
      this.#budget.end();
      return true;
    }
    if (schema === true) return true;
    const fail = (message: string, at = pointer): boolean => {
      if (violations && violations.length < VIOLATION_COUNT_MAX)
        violations.push({ pointer: at, message });
      return false;
    };
    if (!isJsonObject(schema)) return fail('is not allowed');
    this.#depth++;
    // The members that a schema has evaluated count only if it holds.
    const own: Evaluated = this.#schema.hasUnevaluated ? new Set() : undefined;
    const scope: Scope = { schema, value, pointer, violations, evaluated: own, fail };
    // All of them run, so that the sender gets all violations at once.
    const verdicts = [
      this.#holdsItself(scope),
      this.#holdsInPlace(scope),
      isJsonObject(value) ? this.#holdsObject({ ...scope, value }) : true,
      Array.isArray(value) ? this.#holdsList({ ...scope, value }) : true,
    ];
    this.#depth--;
    const isValid = verdicts.every(Boolean);
    if (isValid && evaluated && own) {
      this.#takeMembers(own.size);
      for (const key of own) evaluated.add(key);
    }
    return isValid;
  }

  #takeMembers(count: number): void {
    this.#budget.take(count / MEMBERS_A_STEP);
  }

  #holdsItself({ schema, value, fail }: Scope): boolean {
    const { type, enum: values, const: only } = schema;
    let isValid = true;
    if (Array.isArray(type)) this.#takeMembers(type.length);
    if (type !== undefined && !isOfType(value, type))
      isValid = fail(`must be ${namesIn([type].flat()).join(' or ')}`);
    if (Array.isArray(values) && !this.#isAnyOf(value, values))
      isValid = fail('must be one of the values that the schema lists');
    if (only !== undefined && !this.#isAnyOf(value, [only]))
      isValid = fail('must be the value that the schema names');
    if (typeof value === 'string') return this.#holdsText(schema, value, fail) && isValid;
    if (typeof value === 'number') return holdsNumber(schema, value, fail) && isValid;
    return isValid;
  }

  #holdsText(schema: JsonObject, value: string, fail: Fail): boolean {
    const { minLength, maxLength, pattern } = schema;
    let isValid = true;
    if (minLength !== undefined || maxLength !== undefined) {
      this.#budget.take(value.length / SIZE_A_STEP);
      const length = Array.from(value).length;
      if (isBelow(length, minLength)) isValid = fail(`must have at least ${minLength} characters`);
      if (isAbove(length, maxLength)) isValid = fail(`must have at most ${maxLength} characters`);
    }
    if (typeof pattern === 'string' && !this.#matches(pattern, value))
      isValid = fail(`must match the pattern ${pattern.slice(0, 100)}`);
    return isValid;
  }

  #matches(source: string, text: string): boolean {
    const pattern = this.#schema.patterns.get(source);
    return pattern === undefined || matchesPattern(pattern, text, this.#budget);
  }

  #isAnyOf(value: Json, values: readonly Json[]): boolean {
    this.#budget.take(values.length / SIZE_A_STEP);
    if (typeof value !== 'object' || value === null) return values.includes(value);
    return values.some(
      (each) =>
        typeof each === 'object' &&
        each !== null &&
        this.#budget.take() &&
        isSameJson(value, each, (memberCount) => this.#takeMembers(memberCount)),
    );
  }

  #holdsInPlace({ schema, value, pointer, violations, evaluated, fail }: Scope): boolean {
    const { $ref, allOf, anyOf, oneOf, not, if: condition } = schema;
    const holds = (each: Json, told = violations): boolean =>
      this.holds(each, value, pointer, told, evaluated);
    const countOf = (schemas: readonly Json[]): number =>
      schemas.filter((each) => holds(each, undefined)).length;
    let isValid = true;
    if (typeof $ref === 'string' && !holds(this.#schema.referred.get($ref) ?? true))
      isValid = false;
    if (Array.isArray(allOf)) for (const each of allOf) isValid = holds(each) && isValid;
    if (Array.isArray(anyOf)) {
      // With unevaluated members each that holds counts, so all are asked.
      const isAny = evaluated ? countOf(anyOf) > 0 : anyOf.some((each) => holds(each, undefined));
      if (!isAny) isValid = fail('must match at least one schema of anyOf');
    }
    if (Array.isArray(oneOf) && countOf(oneOf) !== 1)
      isValid = fail('must match exactly one schema of oneOf');
    if (not !== undefined && this.holds(not, value, pointer, undefined))
      isValid = fail('must not match the schema of not');
    if (condition !== undefined) {
      const next = holds(condition, undefined) ? schema['then'] : schema['else'];
      if (next !== undefined) isValid = holds(next) && isValid;
    }
    return isValid;
  }

  #holdsObject(scope: Scope & { readonly value: JsonObject }): boolean {
    const { schema, value, pointer, violations, evaluated, fail } = scope;
    const { required, properties, patternProperties, propertyNames } = schema;
    const { additionalProperties, dependentRequired, dependentSchemas } = schema;
    const keys = Object.keys(value);
    this.#takeMembers(keys.length);
    let isValid = holdsCounts(schema, keys.length, ['minProperties', 'maxProperties'], fail);
    const lacks = (name: string, why: string): void => {
      if (!Object.hasOwn(value, name))
        isValid = fail(`is required${why}`, `${pointer}${pointerStep(name)}`);
    };
    const lacksAny = (names: readonly string[], why: string): void => {
      this.#takeMembers(names.length);
      for (const name of names) lacks(name, why);
    };
    lacksAny(namesIn(required), '');
    for (const [key, names] of this.#entriesOf(dependentRequired))
      if (Object.hasOwn(value, key)) lacksAny(namesIn(names), ` with ${key}`);
    for (const [key, each] of this.#entriesOf(dependentSchemas))
      if (Object.hasOwn(value, key))
        isValid = this.holds(each, value, pointer, violations, evaluated) && isValid;
    const named = isJsonObject(properties) ? properties : undefined;
    const patterned = this.#entriesOf(patternProperties);
    const asksOfMembers = named ?? additionalProperties ?? propertyNames ?? patterned[0];
    for (const key of asksOfMembers === undefined ? [] : keys) {
      const schemas: Json[] = [];
      for (const [source, each] of patterned) if (this.#matches(source, key)) schemas.push(each);
      if (named && Object.hasOwn(named, key)) schemas.push(named[key] as Json);
      if (schemas.length === 0 && additionalProperties !== undefined)
        schemas.push(additionalProperties);
      if (schemas.length === 0 && propertyNames === undefined) continue;
      this.#budget.take(key.length / SIZE_A_STEP);
      const at = `${pointer}${pointerStep(key)}`;
      if (schemas.length > 0) evaluated?.add(key);
      for (const each of schemas)
        isValid = this.holds(each, value[key] as Json, at, violations) && isValid;
      if (propertyNames !== undefined && !this.holds(propertyNames, key, at, undefined))
        isValid = fail('has a name that is not allowed', at);
    }
    return this.#holdsUnevaluated(scope, () => keys, 'unevaluatedProperties') && isValid;
  }

  /** Of a keyword whose schemas or names have names; empty without it. */
  #entriesOf(members: Json | undefined): [string, Json][] {
    const entries = isJsonObject(members) ? Object.entries(members) : [];
    this.#takeMembers(entries.length);
    return entries;
  }

  #holdsList(scope: Scope & { readonly value: Json[] }): boolean {
    const { schema, value, pointer, violations, evaluated, fail } = scope;
    const { prefixItems, items, uniqueItems, contains } = schema;
    let isValid = holdsCounts(schema, value.length, ['minItems', 'maxItems'], fail);
    const first = Array.isArray(prefixItems) ? prefixItems : [];
    for (const [index, item] of value.entries()) {
      const each = index < first.length ? first[index] : items;
      if (each === undefined) break;
      evaluated?.add(index);
      isValid = this.holds(each, item, `${pointer}/${index}`, violations) && isValid;
    }
    if (uniqueItems === true && this.#hasEqualEntries(value))
      isValid = fail('must not have the same entry twice');
    if (contains !== undefined) {
      const found = [...value.keys()].filter((index) =>
        this.holds(contains, value[index] as Json, `${pointer}/${index}`, undefined),
      );
      for (const index of found) evaluated?.add(index);
      const { minContains = 1, maxContains } = schema;
      if (isBelow(found.length, minContains) || isAbove(found.length, maxContains))
        isValid = fail('must have other numbers of entries that match the schema of contains');
    }
    const indexes = (): number[] => [...value.keys()];
    return this.#holdsUnevaluated(scope, indexes, 'unevaluatedItems') && isValid;
  }

  /**
   * Each entry costs steps before the next one is read: schemas that ask of one list of 32,000 equal entries again and
   * again kept intake busy for ten seconds.
   */
  #hasEqualEntries(list: readonly Json[]): boolean {
    const texts = new Set<string>();
    for (const entry of list) {
      const text = canonicalJson(entry);
      const charactersAStep = typeof entry === 'string' ? SIZE_A_STEP : TEXT_A_STEP;
      if (!this.#budget.take(1 + text.length / charactersAStep)) return false;
      if (texts.has(text)) return true;
      texts.add(text);
    }
    return false;
  }

  /** After all else that looks at the members. */
  #holdsUnevaluated(
    { schema, value, pointer, violations, evaluated }: Scope,
    keysOf: () => readonly (string | number)[],
    keyword: 'unevaluatedProperties' | 'unevaluatedItems',
  ): boolean {
    const rest = schema[keyword];
    if (rest === undefined || !evaluated) return true;
    let isValid = true;
    const keys = keysOf();
    this.#takeMembers(keys.length);
    for (const key of keys) {
      if (evaluated.has(key)) continue;
      evaluated.add(key);
      const member = (value as Readonly<Record<string | number, Json>>)[key] as Json;
      const at = `${pointer}${pointerStep(key)}`;
      isValid = this.holds(rest, member, at, violations) && isValid;
    }
    return isValid;
  }
}

interface Scope {
  readonly schema: JsonObject;
  readonly value: Json;
  readonly pointer: string;
  readonly violations: Violation[] | undefined;
  readonly evaluated: Evaluated;
  readonly fail: Fail;
}
