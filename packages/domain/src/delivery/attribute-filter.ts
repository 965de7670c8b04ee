/**
 * Attribute filters of webhooks: conditions on members of the delivery's body, all of which must hold. Names and
 * meanings are the same as for segments (`messaging-conventions.md` §1.4).
 *
 * They are checked before a delivery is logged: an event that does not match costs no row and no request. A later
 * filter does not change deliveries that are already logged.
 */
import { TextSearch } from '../value-rules/text-search.ts';
import { canonicalJson, isJsonObject, type Json, type JsonObject } from '../values/json.ts';
import type { ReportingEvent } from './reporting-event.ts';

export const FILTER_OPERATORS = [
  'eq',
  'not_eq',
  'in',
  'not_in',
  'exists',
  'not_exists',
  'contains',
  'not_contains',
  'gt',
  'gte',
  'lt',
  'lte',
] as const;

export type FilterOperator = (typeof FILTER_OPERATORS)[number];

/** Values that an operator takes: no value, one number, or any number of texts of which one must fit. */
export const valuesOfOperator = (operator: FilterOperator): 'none' | 'number' | 'texts' => {
  switch (operator) {
    case 'exists':
    case 'not_exists':
      return 'none';
    case 'gt':
    case 'gte':
    case 'lt':
    case 'lte':
      return 'number';
    default:
      return 'texts';
  }
};

export interface AttributeFilter {
  /**
   * Dots between levels: `object_type`, `data.campaign_id`, `data.identifiers.email`. At each level the longest key is found
   * first, dots included. In a list the next part is a place (`data.recipients.0.device_id`) or a member of any of its objects.
   */
  readonly field: string;
  readonly operator: FilterOperator;
  /** As text. */
  readonly values?: readonly string[] | undefined;
}

const JSON_NUMBER = /^-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?$/;
const WHOLE_NUMBER = /^-?\d+$/;

/** True for a JSON number, or a text that is one. */
export const isNumberText = (text: string): boolean => JSON_NUMBER.test(text);

/** Null counts as absent, and an absent member is not equal to any value. */
export function matchesFilters(
  event: ReportingEvent,
  filters: readonly AttributeFilter[],
): boolean {
  const body: Json = {
    event_id: event.eventId,
    object_type: event.objectType,
    metric: event.metric,
    timestamp: Math.floor(event.occurredAtMs / 1000),
    data: event.data,
  };
  return filters.every((filter) => holds(body, filter));
}

/** Texts that are compared with each value before a set of the values is made. */
const COMPARED_TEXT_COUNT_MAX = 8;

/** Length of texts, once for each value, that is searched before a search for all values at once is made. */
const SEARCHED_LENGTH_MAX = 200_000;
/** For each character of the values, of which a search for all is made: to make it takes as long as so much searched text. */
const SEARCHED_LENGTH_A_CHARACTER = 50;

/** The values of a filter as they are compared with members. */
class Wanted {
  readonly values: readonly string[];
  readonly ignoresCase: boolean;
  #comparedCount = 0;
  #set: ReadonlySet<string> | undefined;
  #hasObjects: boolean | undefined;
  #searchedLength = 0;
  #searchedLengthMax: number | undefined;
  #search: TextSearch | undefined;

  constructor(values: readonly string[], ignoresCase: boolean) {
    this.values = ignoresCase ? values.map((value) => value.toLowerCase()) : values;
    this.ignoresCase = ignoresCase;
  }

  /** True if one of them is the JSON of an object or a list. */
  get hasObjects(): boolean {
    return (this.#hasObjects ??= this.values.some((value) => /^[[{]/.test(value)));
  }

  /**
   * The first texts are compared with each value, which is faster than a set for one event. A list of 16,000 emails
   * against 1,000 values took a second that way, in which the worker did no other work.
   */
  has(text: string): boolean {
    if (!this.#set && ++this.#comparedCount <= COMPARED_TEXT_COUNT_MAX)
      return this.values.includes(text);
    this.#set ??= new Set(this.values);
    return this.#set.has(text);
  }

  /**
   * True if one of them is a part of the text. The first texts are searched for each value, which is faster for short
   * ones. A thousand values with a common beginning took 0.7 s in a text of 60 KB.
   */
  isAnyIn(text: string): boolean {
    if (this.#search) return this.#search.isAnyIn(text);
    // A longer value is refused at once.
    const searched = this.values.filter(({ length }) => length <= text.length);
    this.#searchedLength += searched.length * text.length;
    this.#searchedLengthMax ??= Math.max(
      SEARCHED_LENGTH_MAX,
      SEARCHED_LENGTH_A_CHARACTER * this.values.reduce((sum, { length }) => sum + length, 0),
    );
    if (this.#searchedLength <= this.#searchedLengthMax)
      return searched.some((value) => text.includes(value));
    this.#search = new TextSearch(this.values);
    return this.#search.isAnyIn(text);
  }
}

/** By the list of a filter: made once a transaction, which reads the filters. */
const wantedByValues = new WeakMap<readonly string[], { readonly [field: string]: Wanted }>();
const NO_VALUES: readonly string[] = [];

function wantedOf({ field, values = NO_VALUES }: AttributeFilter): Wanted {
  const ignoresCase = isEmail(field);
  const kind = ignoresCase ? 'email' : 'text';
  const made = wantedByValues.get(values);
  const known = made?.[kind];
  if (known) return known;
  const wanted = new Wanted(values, ignoresCase);
  wantedByValues.set(values, { ...made, [kind]: wanted });
  return wanted;
}

function holds(body: Json, filter: AttributeFilter): boolean {
  const { field, operator, values = NO_VALUES } = filter;
  const found = membersOf(body, field);
  const isAny = (test: (member: Json) => boolean): boolean => found.some(test);
  const isAnyWanted = (test: (member: Json, wanted: Wanted) => boolean): boolean => {
    if (found.length === 0) return false;
    const wanted = wantedOf(filter);
    return found.some((member) => test(member, wanted));
  };
  switch (operator) {
    case 'exists':
      return found.length > 0;
    case 'not_exists':
      return found.length === 0;
    case 'eq':
    case 'in':
      return isAnyWanted(isEqualToAny);
    case 'not_eq':
    case 'not_in':
      return !isAnyWanted(isEqualToAny);
    case 'contains':
      return isAnyWanted(containsAny);
    case 'not_contains':
      return !isAnyWanted(containsAny);
    case 'gt':
      return isAny((member) => isOrdered(member, values, (sign) => sign > 0));
    case 'gte':
      return isAny((member) => isOrdered(member, values, (sign) => sign >= 0));
    case 'lt':
      return isAny((member) => isOrdered(member, values, (sign) => sign < 0));
    case 'lte':
      return isAny((member) => isOrdered(member, values, (sign) => sign <= 0));
  }
}

/** The values at a path, except null; several if it leads through a list. */
function membersOf(value: Json, path: string): Json[] {
  if (Array.isArray(value)) {
    const [place = '', ...rest] = path.split('.');
    if (WHOLE_NUMBER.test(place)) return inMember(value[Number(place)], rest.join('.'));
    return value.flatMap((each) => membersOf(each, path));
  }
  if (!isJsonObject(value)) return [];
  if (Object.hasOwn(value, path)) return inMember(value[path], '');
  const key = longestKeyOf(value, path);
  return key === undefined ? [] : inMember(value[key], path.slice(key.length + 1));
}

/** Keys that are compared with a path before its beginnings are looked up instead. */
const COMPARED_KEY_COUNT_MAX = 8;

/**
 * The longest key with which the path begins, in front of a dot. Most objects of a list have few keys: to look up each
 * beginning of a path of 100 parts in 20,000 of them took a quarter of a second.
 */
function longestKeyOf(value: JsonObject, path: string): string | undefined {
  let found: string | undefined;
  let count = 0;
  for (const key in value) {
    if (++count > COMPARED_KEY_COUNT_MAX) return longestBeginningIn(value, path);
    const isLonger = key.length > (found?.length ?? 0);
    if (isLonger && path[key.length] === '.' && path.startsWith(key)) found = key;
  }
  return found;
}

function longestBeginningIn(value: JsonObject, path: string): string | undefined {
  for (let dot = path.lastIndexOf('.'); dot > 0; dot = path.lastIndexOf('.', dot - 1)) {
    const key = path.slice(0, dot);
    if (Object.hasOwn(value, key)) return key;
  }
  return undefined;
}

function inMember(member: Json | undefined, rest: string): Json[] {
  if (member === null || member === undefined) return [];
  return rest === '' ? [member] : membersOf(member, rest);
}

/** Emails are the same in either letter case. */
const isEmail = (field: string): boolean => /(?:^|\.)email(?:_address)?$/.test(field);

/** A scalar by its text, an object by its canonical JSON, a list by any of its elements. */
function isEqualToAny(member: Json, wanted: Wanted): boolean {
  if (Array.isArray(member)) return member.some((each) => each !== null && isEqualTo(each, wanted));
  return isEqualTo(member, wanted);
}

function isEqualTo(member: Json, wanted: Wanted): boolean {
  if (typeof member === 'object' && !wanted.hasObjects) return false;
  const text = typeof member === 'object' ? canonicalJson(member) : String(member);
  return wanted.has(wanted.ignoresCase ? text.toLowerCase() : text);
}

/** A text that holds one of them, or a list with an element that is equal to one. */
function containsAny(member: Json, wanted: Wanted): boolean {
  if (Array.isArray(member)) return isEqualToAny(member, wanted);
  if (typeof member !== 'string') return false;
  const text = wanted.ignoresCase ? member.toLowerCase() : member;
  return wanted.isAnyIn(text);
}

/** Both sides are numbers, or texts that are numbers, and stand so to each other. */
function isOrdered(
  member: Json,
  [value]: readonly string[],
  isSo: (sign: number) => boolean,
): boolean {
  if (typeof member !== 'string' && typeof member !== 'number') return false;
  const text = String(member);
  if (value === undefined || !isNumberText(text) || !isNumberText(value)) return false;
  return isSo(signOf(text, value));
}

function signOf(one: string, other: string): number {
  if (WHOLE_NUMBER.test(one) && WHOLE_NUMBER.test(other)) return signOfWhole(one, other);
  return Math.sign(Number(one) - Number(other));
}

/** Exact for any length, by the digits: an event may bring 60,000 of them. */
function signOfWhole(one: string, other: string): number {
  const isNegative = (text: string): boolean => text.startsWith('-') && text !== '-0';
  if (isNegative(one) !== isNegative(other)) return isNegative(one) ? -1 : 1;
  const [a, b] = [one, other].map((text) => text.replace('-', '')) as [string, string];
  if (a === b) return 0;
  const isGreater = a.length === b.length ? a > b : a.length > b.length;
  return isGreater === isNegative(one) ? -1 : 1;
}
