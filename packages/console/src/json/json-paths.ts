/** Paths of the parts of a JSON value, in a program's notation. Pure. */
import { isExactNumber } from './exact-json.ts';

export interface JsonPath {
  /** `data.items[0]["a key"]`. */
  readonly path: string;
  /** The value as JSON; a text without its quotes. */
  readonly value: string;
}

const NAME = /^[A-Za-z_$][\w$]*$/;

/** The members of an object or a list, with their paths, in their order. Of another value an empty list. */
export function membersOf(
  value: unknown,
  path: string,
): readonly {
  readonly name: string | undefined;
  readonly path: string;
  readonly value: unknown;
}[] {
  if (Array.isArray(value))
    return value.map((each: unknown, index) => ({
      name: undefined,
      path: `${path}[${index}]`,
      value: each,
    }));
  if (typeof value !== 'object' || value === null || isExactNumber(value)) return [];
  return Object.entries(value).map(([name, each]) => ({
    name,
    path: stepTo(path, name),
    value: each as unknown,
  }));
}

/** The values that hold no others, with their paths, in their order. An empty object and an empty list are values. */
export function pathsOf(value: unknown, path = ''): JsonPath[] {
  const members = membersOf(value, path);
  if (members.length === 0) return path === '' ? [] : [{ path, value: copiedText(value) }];
  return members.flatMap((each) => pathsOf(each.value, each.path));
}

/** A value as it is copied: a text without its quotes, another value as JSON on several lines. */
export const copiedText = (value: unknown): string =>
  typeof value === 'string' ? value : JSON.stringify(value, null, 2);

function stepTo(path: string, name: string): string {
  if (!NAME.test(name)) return `${path}[${JSON.stringify(name)}]`;
  return path === '' ? name : `${path}.${name}`;
}
