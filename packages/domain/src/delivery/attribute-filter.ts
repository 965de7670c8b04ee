/**
 * Attribute filters of webhooks: conditions on members of the delivery's body, all of which must hold. Names and
 * meanings are the same as for segments (`messaging-conventions.md` §1.4).
 *
 * They are checked before a delivery is logged: an event that does not match costs no row and no request. A later
 * filter does not change deliveries that are already logged.
 */
import { canonicalJson } from '../values/canonical-json.ts';
import { isJsonObject, type Json } from '../values/json.ts';
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

function holds(body: Json, { field, operator, values = [] }: AttributeFilter): boolean {
  const found = membersOf(body, field);
  const isAny = (test: (member: Json) => boolean): boolean => found.some(test);
  switch (operator) {
    case 'exists':
      return found.length > 0;
    case 'not_exists':
      return found.length === 0;
    case 'eq':
    case 'in':
      return isAny((member) => isEqualToAny(member, values, isEmail(field)));
    case 'not_eq':
    case 'not_in':
      return !isAny((member) => isEqualToAny(member, values, isEmail(field)));
    case 'contains':
      return isAny((member) => containsAny(member, values, isEmail(field)));
    case 'not_contains':
      return !isAny((member) => containsAny(member, values, isEmail(field)));
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
  for (let dot = path.lastIndexOf('.'); dot > 0; dot = path.lastIndexOf('.', dot - 1)) {
    const key = path.slice(0, dot);
    if (Object.hasOwn(value, key)) return inMember(value[key], path.slice(dot + 1));
  }
  return [];
}

function inMember(member: Json | undefined, rest: string): Json[] {
  if (member === null || member === undefined) return [];
  return rest === '' ? [member] : membersOf(member, rest);
}

/** Emails are the same in either letter case. */
const isEmail = (field: string): boolean => /(?:^|\.)email(?:_address)?$/.test(field);

/** A scalar by its text, an object by its canonical JSON, a list by any of its elements. */
function isEqualToAny(member: Json, values: readonly string[], ignoresCase: boolean): boolean {
  if (Array.isArray(member))
    return member.some((each) => each !== null && isEqualTo(each, values, ignoresCase));
  return isEqualTo(member, values, ignoresCase);
}

function isEqualTo(member: Json, values: readonly string[], ignoresCase: boolean): boolean {
  const text = typeof member === 'object' ? canonicalJson(member) : String(member);
  if (!ignoresCase) return values.includes(text);
  return values.some((value) => value.toLowerCase() === text.toLowerCase());
}

/** A text that holds one of them, or a list with an element that is equal to one. */
function containsAny(member: Json, values: readonly string[], ignoresCase: boolean): boolean {
  if (Array.isArray(member)) return isEqualToAny(member, values, ignoresCase);
  if (typeof member !== 'string') return false;
  if (!ignoresCase) return values.some((value) => member.includes(value));
  return values.some((value) => member.toLowerCase().includes(value.toLowerCase()));
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

/** Whole numbers of any length are compared exactly. */
function signOf(one: string, other: string): number {
  if (WHOLE_NUMBER.test(one) && WHOLE_NUMBER.test(other)) {
    const [a, b] = [BigInt(one), BigInt(other)];
    return a === b ? 0 : a > b ? 1 : -1;
  }
  return Math.sign(Number(one) - Number(other));
}
