/**
 * A JSON value as lines, of which objects and lists are folded. Pure.
 *
 * The lines of an unfolded value are the text that `JSON.stringify(value, null, 2)` makes.
 */
import { membersOf } from './json-paths.ts';

export interface JsonLine {
  /** Of the part that the line begins, shows or ends; the whole value has an empty one. */
  readonly path: string;
  /** `begin` and `end` of an unfolded object or list, `folded` for a whole one, `value` for any other part. `more`: members that are not shown yet. */
  readonly kind: 'begin' | 'end' | 'folded' | 'value' | 'more';
  /** 0 for the whole value. */
  readonly level: number;
  /** Without its indentation. */
  readonly text: string;
  readonly value: unknown;
}

export interface Folding {
  readonly isFolded: (path: string, level: number) => boolean;
  /** How many members of the part are shown. */
  readonly shownCountOf: (path: string) => number;
}

export const UNFOLDED: Folding = {
  isFolded: () => false,
  shownCountOf: () => Infinity,
};

export function linesOf(value: unknown, folding: Folding): readonly JsonLine[] {
  const lines: JsonLine[] = [];
  addLines(lines, { path: '', level: 0, value, before: '', after: '' }, folding);
  return lines;
}

interface Part extends Pick<JsonLine, 'path' | 'level' | 'value'> {
  /** The name of the part. */
  readonly before: string;
  /** The comma, unless it is the last one. */
  readonly after: string;
}

function addLines(lines: JsonLine[], part: Part, folding: Folding): void {
  const { path, level, value, before, after } = part;
  const members = membersOf(value, path);
  if (members.length === 0) {
    lines.push({
      path,
      level,
      value,
      kind: 'value',
      text: `${before}${JSON.stringify(value)}${after}`,
    });
    return;
  }
  const [open, close] = Array.isArray(value) ? ['[', ']'] : ['{', '}'];
  if (folding.isFolded(path, level)) {
    const text = `${before}${open} … ${members.length} ${close}${after}`;
    lines.push({ path, level, value, kind: 'folded', text });
    return;
  }
  lines.push({ path, level, value, kind: 'begin', text: `${before}${open}` });
  const shownCount = folding.shownCountOf(path);
  for (const [index, each] of members.entries()) {
    if (index >= shownCount) {
      const text = `… ${members.length - index} more`;
      lines.push({ path, level: level + 1, value, kind: 'more', text });
      break;
    }
    addLines(
      lines,
      {
        path: each.path,
        level: level + 1,
        value: each.value,
        before: each.name === undefined ? '' : `${JSON.stringify(each.name)}: `,
        after: index === members.length - 1 ? '' : ',',
      },
      folding,
    );
  }
  lines.push({ path, level, value, kind: 'end', text: `${close}${after}` });
}
