/**
 * The filter of `POST /v1/objects` (ingestion-conventions.md §5.3): read from JSON.
 *
 * It becomes the database's form of `and`, `or` and `not` around conditions on attributes. Bounded in depth and in
 * number, because each condition becomes part of a statement. Pure.
 */
import type { ObjectFilter } from '@sluice/database/people/object-reads';
import { isJsonObject, type JsonObject } from '@sluice/domain/values/json';
import { isStorableText } from '@sluice/domain/values/storable-text';
import { z } from 'zod';

const DEPTH_MAX = 10;
const CONDITION_COUNT_MAX = 100;
const TEXT_LENGTH_MAX = 1_000;

/** A filter together with the types that its conditions name. */
export interface ReadFilter {
  readonly filter: ObjectFilter;
  readonly typeIds: ReadonlySet<string>;
}

export const objectFilter = z
  .unknown()
  .transform((value, context): ReadFilter => {
    const reader = new FilterReader();
    const filter = reader.read(value, [], 0);
    if (filter !== undefined) return { filter, typeIds: reader.typeIds };
    for (const { path, message } of reader.problems) {
      context.issues.push({ code: 'custom', message, path, input: value });
    }
    return z.NEVER;
  })
  .meta({
    type: 'object',
    additionalProperties: true,
    minProperties: 1,
    maxProperties: 1,
    description: `One of \`and\` or \`or\` (a list of filters), \`not\` (one filter), or \`object_attribute\`: \`{field, operator, value, type_id}\` with the operator \`eq\` (compared as text) or \`exists\`. \`object_id\` is a field too. At most ${DEPTH_MAX} levels, ${CONDITION_COUNT_MAX} conditions, and texts of ${TEXT_LENGTH_MAX} characters.`,
  });

class FilterReader {
  readonly problems: { path: (string | number)[]; message: string }[] = [];
  readonly typeIds = new Set<string>();
  #conditionCount = 0;

  /** Undefined if part of it is refused; `problems` has the reasons. */
  read(value: unknown, path: (string | number)[], depth: number): ObjectFilter | undefined {
    if (!isJsonObject(value)) return this.#refuse(path, 'must be a JSON object');
    if (depth >= DEPTH_MAX) return this.#refuse(path, `must be at most ${DEPTH_MAX} levels deep`);
    const keys = Object.keys(value);
    const [key] = keys;
    if (keys.length !== 1 || key === undefined)
      return this.#refuse(path, 'must hold one of and, or, not, object_attribute');
    switch (key) {
      case 'and':
      case 'or':
        return this.#readList(key, value[key], [...path, key], depth);
      case 'not': {
        const filter = this.read(value[key], [...path, key], depth + 1);
        return filter && { kind: 'not', filter };
      }
      case 'object_attribute':
        return this.#readCondition(value[key], [...path, key]);
      default:
        return this.#refuse(path, 'must hold one of and, or, not, object_attribute');
    }
  }

  #readList(
    kind: 'and' | 'or',
    value: unknown,
    path: (string | number)[],
    depth: number,
  ): ObjectFilter | undefined {
    if (!Array.isArray(value) || value.length === 0)
      return this.#refuse(path, 'must be a list of at least one filter');
    if (value.length > CONDITION_COUNT_MAX) return this.#refuseCount(path);
    const filters: ObjectFilter[] = [];
    for (const [index, each] of value.entries()) {
      const filter = this.read(each, [...path, index], depth + 1);
      if (filter === undefined) return undefined;
      filters.push(filter);
    }
    return { kind, filters };
  }

  #readCondition(value: unknown, path: (string | number)[]): ObjectFilter | undefined {
    if (++this.#conditionCount > CONDITION_COUNT_MAX) return this.#refuseCount(path);
    if (!isJsonObject(value)) return this.#refuse(path, 'must be a JSON object');
    const field = readText(value, 'field');
    if (field === undefined || field === '')
      return this.#refuse([...path, 'field'], 'must be the name of an attribute');
    const typeId = value['type_id'];
    if (typeof typeId === 'string' || typeof typeId === 'number') this.typeIds.add(String(typeId));
    else if (typeId != null)
      return this.#refuse([...path, 'type_id'], 'must be the object_type_id of the call');
    switch (value['operator']) {
      case 'exists':
        return { kind: 'exists', field };
      case 'eq': {
        const text = readText(value, 'value');
        if (text === undefined)
          return this.#refuse([...path, 'value'], 'must be a text, a number or a boolean');
        return { kind: 'equals', field, value: text };
      }
      default:
        return this.#refuse([...path, 'operator'], 'must be one of eq, exists');
    }
  }

  #refuse(path: (string | number)[], message: string): undefined {
    this.problems.push({ path, message });
  }

  #refuseCount(path: (string | number)[]): undefined {
    return this.#refuse(path, `must hold at most ${CONDITION_COUNT_MAX} conditions`);
  }
}

/** Undefined for a value that is no single value, or could not be stored and so cannot be found. */
function readText(object: JsonObject, key: string): string | undefined {
  const value = Object.hasOwn(object, key) ? object[key] : undefined;
  if (typeof value === 'number' || typeof value === 'boolean') return String(value);
  if (typeof value !== 'string' || value.length > TEXT_LENGTH_MAX) return undefined;
  return isStorableText(value) ? value : undefined;
}
