/**
 * Which events of the types that a webhook has chosen it is told of: conditions on members of the
 * delivery's body, all of which must hold.
 *
 * They are checked when a delivery would be logged: what does not match costs no row and no request, and a filter
 * that comes later does not change what is already logged.
 */
import { isJsonObject, type Json } from '../values/json.ts';
import type { ReportingEvent } from './reporting-event.ts';

export const FILTER_OPERATORS = ['eq', 'not_eq', 'exists', 'not_exists'] as const;

export interface AttributeFilter {
  /** Dots between levels: `object_type`, `data.campaign_id`, `data.identifiers.email`. */
  readonly field: string;
  readonly operator: (typeof FILTER_OPERATORS)[number];
  /** For `eq` the member must be one of these, for `not_eq` none; compared as text. */
  readonly values?: readonly string[] | undefined;
}

/** Null counts as absent, and what is absent is not equal to anything. */
export function matchesFilters(
  event: ReportingEvent,
  filters: readonly AttributeFilter[],
): boolean {
  const body: Json = {
    event_id: event.eventId,
    object_type: event.objectType,
    metric: event.metric,
    data: event.data,
  };
  return filters.every(({ field, operator, values = [] }) => {
    const found = memberOf(body, field.split('.'));
    switch (operator) {
      case 'exists':
        return found !== null;
      case 'not_exists':
        return found === null;
      case 'eq':
        return isOneOf(found, values);
      case 'not_eq':
        return !isOneOf(found, values);
    }
  });
}

function memberOf(body: Json, path: readonly string[]): Json {
  let value = body;
  for (const key of path) {
    if (!isJsonObject(value) || !Object.hasOwn(value, key)) return null;
    value = value[key] ?? null;
  }
  return value;
}

function isOneOf(found: Json, values: readonly string[]): boolean {
  return found !== null && typeof found !== 'object' && values.includes(String(found));
}
