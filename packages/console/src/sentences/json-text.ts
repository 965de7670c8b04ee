/** JSON that was typed, and the paths of a JSON value. Pure. */

/** @returns its value, null if the text is empty; or in words why it is no JSON. */
export function jsonOf(text: string): { readonly value: unknown; readonly problem?: string } {
  if (text.trim() === '') return { value: null };
  try {
    return { value: JSON.parse(text) as unknown };
  } catch (error) {
    return { value: null, problem: `is not JSON: ${(error as Error).message}` };
  }
}

export interface JsonPath {
  /** `data.items[0]["a key"]`. */
  readonly path: string;
  /** The value as JSON; a text without its quotes. */
  readonly value: string;
}

const NAME = /^[A-Za-z_$][\w$]*$/;

/** The values that hold no others, with their paths, in their order. An empty object and an empty list are values. */
export function pathsOf(value: unknown, path = ''): JsonPath[] {
  const inner: readonly (readonly [string, unknown])[] = Array.isArray(value)
    ? value.map((each, index) => [`${path}[${index}]`, each])
    : typeof value === 'object' && value !== null
      ? Object.entries(value).map(([name, each]) => [stepTo(path, name), each])
      : [];
  if (inner.length === 0)
    return path === ''
      ? []
      : [{ path, value: typeof value === 'string' ? value : JSON.stringify(value) }];
  return inner.flatMap(([to, each]) => pathsOf(each, to));
}

function stepTo(path: string, name: string): string {
  if (!NAME.test(name)) return `${path}[${JSON.stringify(name)}]`;
  return path === '' ? name : `${path}.${name}`;
}
