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
