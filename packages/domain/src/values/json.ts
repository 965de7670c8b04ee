/**
 * JSON values as the rest of the domain sees them.
 *
 * Objects that come from clients may own a key named `__proto__`. Spreading keeps it an ordinary
 * key; plain assignment would change the prototype. So client keys are copied with `setKey` only.
 */

export type Json = null | boolean | number | string | Json[] | JsonObject;
export interface JsonObject {
  [key: string]: Json;
}

/** True for a JSON object: not null, not an array. */
export function isJsonObject(value: unknown): value is JsonObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** Sets a client's key on `target`; `__proto__` becomes an ordinary own key. */
export function setKey<Value>(
  target: { [key: string]: Value },
  key: string,
  value: NoInfer<Value>,
): void {
  if (key === '__proto__') {
    Object.defineProperty(target, key, {
      value,
      enumerable: true,
      configurable: true,
      writable: true,
    });
  } else {
    target[key] = value;
  }
}

/**
 * The object or list that a text is the JSON of; any other value as it is. Some clients can send texts only, so their
 * objects come as JSON.
 */
export function parsedText(value: unknown): unknown {
  if (typeof value !== 'string' || !/^\s*[[{]/.test(value)) return value;
  try {
    return JSON.parse(value);
  } catch {
    return value;
  }
}

/**
 * One text for one JSON value: keys sorted by UTF-16 code unit, no blanks (as RFC 8785 for the values that we hash). So
 * the hash of a value is the same before it goes into `jsonb` and after it comes back. `jsonb` keeps neither the order
 * of keys nor the spelling of numbers.
 */
export function canonicalJson(value: Json): string {
  if (typeof value !== 'object' || value === null) return JSON.stringify(value);
  if (Array.isArray(value)) return `[${value.map(canonicalJson).join(',')}]`;
  const members = Object.keys(value)
    .toSorted()
    .map((key) => `${JSON.stringify(key)}:${canonicalJson(value[key] as Json)}`);
  return `{${members.join(',')}}`;
}
