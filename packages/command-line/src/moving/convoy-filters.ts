/**
 * The filters of Convoy's subscriptions, as `attribute_filters` of an endpoint. A filter without an exact counterpart is not moved
 * in part: the owner must set it by hand, and learns of it. Pure.
 */
import type { AttributeFilter, FilterOperator } from '@sluice/domain/delivery/attribute-filter';
import {
  canonicalJson,
  isJsonObject,
  type Json,
  type JsonObject,
} from '@sluice/domain/values/json';

/** As the API's bound (`webhook-options.ts`). */
const FILTER_COUNT_MAX = 20;
/** The place of a published payload in the body of a delivery. */
const PAYLOAD = 'data.payload';

const COMPARISONS: Readonly<Record<string, FilterOperator>> = {
  $gt: 'gt',
  $gte: 'gte',
  $lt: 'lt',
  $lte: 'lte',
};

/**
 * @param filters - one for each subscription of an endpoint: `{body, headers, query, path}`. Absent parts are empty.
 * @returns conditions that all must hold, or an empty list for every event. Undefined for filters without a counterpart.
 */
export function attributeFiltersOf(
  filters: readonly JsonObject[],
): readonly AttributeFilter[] | undefined {
  const [first, ...others] = filters;
  if (first === undefined) return [];
  // Convoy sends an event for each subscription that it fits. Subscriptions with equal filters have one condition.
  if (others.some((other) => partsOf(other) !== partsOf(first))) return undefined;
  if (['headers', 'query', 'path'].some((part) => isFilled(first[part]))) return undefined;
  const body = first['body'] ?? {};
  const read = isJsonObject(body) ? conditionsOf(body, PAYLOAD) : undefined;
  return read && read.length <= FILTER_COUNT_MAX ? read : undefined;
}

const isFilled = (part: Json | undefined): boolean =>
  isJsonObject(part ?? null) && Object.keys(part as JsonObject).length > 0;

const partsOf = (filter: JsonObject): string =>
  canonicalJson(['body', 'headers', 'query', 'path'].map((part) => filter[part] ?? {}));

/** The conditions of a filter object on the member at `path`. All must hold. */
function conditionsOf(filter: JsonObject, path: string): AttributeFilter[] | undefined {
  return allOf(
    Object.entries(filter).map(([key, wanted]) => {
      if (key === '$and' && Array.isArray(wanted))
        return allOf(
          wanted.map((each) => (isJsonObject(each) ? conditionsOf(each, path) : undefined)),
        );
      if (key === '$or' && Array.isArray(wanted)) return oneOf(wanted, path);
      if (key.startsWith('$')) return operatorOf(key, wanted, path);
      // `items.$.id` is the id of any item.
      const field = `${path}.${key.replaceAll('$.', '')}`;
      return isJsonObject(wanted)
        ? isFilled(wanted)
          ? conditionsOf(wanted, field)
          : undefined
        : equalTo([wanted], field);
    }),
  );
}

function operatorOf(name: string, wanted: Json, field: string): AttributeFilter[] | undefined {
  const comparison = COMPARISONS[name];
  if (comparison !== undefined)
    return typeof wanted === 'number'
      ? [{ field, operator: comparison, values: [String(wanted)] }]
      : undefined;
  switch (name) {
    case '$eq':
      return equalTo([wanted], field);
    case '$in':
      return Array.isArray(wanted) ? equalTo(wanted, field) : undefined;
    case '$neq':
      return differentFrom([wanted], field);
    case '$nin':
      return Array.isArray(wanted) ? differentFrom(wanted, field) : undefined;
    case '$exist':
      return typeof wanted === 'boolean'
        ? [{ field, operator: wanted ? 'exists' : 'not_exists' }]
        : undefined;
    default:
      return undefined;
  }
}

function equalTo(wanted: readonly Json[], field: string): AttributeFilter[] | undefined {
  const values = scalarsOf(wanted);
  return values && [{ field, operator: values.length === 1 ? 'eq' : 'in', values }];
}

/** In Convoy, an absent member is not different from a value either. */
function differentFrom(wanted: readonly Json[], field: string): AttributeFilter[] | undefined {
  const values = scalarsOf(wanted);
  return (
    values && [
      { field, operator: 'exists' },
      { field, operator: values.length === 1 ? 'not_eq' : 'not_in', values },
    ]
  );
}

/** Alternatives are one condition if all of them are values of one member. */
function oneOf(alternatives: readonly Json[], path: string): AttributeFilter[] | undefined {
  const read = alternatives.map((each) =>
    isJsonObject(each) ? conditionsOf(each, path) : undefined,
  );
  const values: string[] = [];
  let field: string | undefined;
  for (const conditions of read) {
    const [only, ...rest] = conditions ?? [];
    if (!only || rest.length > 0 || !['eq', 'in'].includes(only.operator)) return undefined;
    if (field !== undefined && only.field !== field) return undefined;
    field = only.field;
    values.push(...(only.values ?? []));
  }
  return field === undefined ? undefined : [{ field, operator: 'in', values }];
}

/** The values as text; undefined for an empty list, or if a value is not a text, number or boolean. */
function scalarsOf(wanted: readonly Json[]): string[] | undefined {
  const scalars = wanted.filter((each) => each !== null && typeof each !== 'object');
  return scalars.length === wanted.length && scalars.length > 0 ? scalars.map(String) : undefined;
}

function allOf(
  parts: readonly (readonly AttributeFilter[] | undefined)[],
): AttributeFilter[] | undefined {
  const read = parts.filter((part) => part !== undefined);
  return read.length === parts.length ? read.flat() : undefined;
}
