/** SQL template literals in TypeScript source, found by their text. */

/** A template literal behind `sql`: its texts, and the expressions between. */
export type Template = readonly (string | { readonly expression: string })[];

/** Templates that make a statement of their own, not the ones inside another. */
export function templatesIn(source: string): { start: number; end: number; template: Template }[] {
  const found: { start: number; end: number; template: Template }[] = [];
  const opening = /\bsql(?:<(?:[^<>`]|<[^<>`]*>)*>)?`/g;
  for (let match = opening.exec(source); match; match = opening.exec(source)) {
    const { template, end } = readTemplate(source, opening.lastIndex);
    found.push({ start: match.index, end, template });
    opening.lastIndex = end;
  }
  return found;
}

/** The name of the declaration at the left margin above that place. */
export function functionAt(source: string, place: number): string {
  const names = source
    .slice(0, place)
    .matchAll(/^(?:export )?(?:async )?(?:function\*? |const |class )(\w+)/gm);
  return [...names].at(-1)?.[1] ?? '';
}

function readTemplate(source: string, start: number): { template: Template; end: number } {
  const parts: (string | { expression: string })[] = [];
  let text = '';
  for (let at = start; at < source.length; at++) {
    const character = source[at] as string;
    if (character === '`') {
      parts.push(text);
      return { template: parts, end: at + 1 };
    }
    if (character === '\\') {
      text += source[++at];
    } else if (character === '$' && source[at + 1] === '{') {
      const end = endOfExpression(source, at + 2);
      parts.push(text, { expression: source.slice(at + 2, end) });
      text = '';
      at = end;
    } else text += character;
  }
  throw new Error('a template does not end');
}

/** The place of the brace that ends it. */
function endOfExpression(source: string, start: number): number {
  let depth = 0;
  for (let at = start; at < source.length; at++) {
    const character = source[at];
    if (character === '`') at = readTemplate(source, at + 1).end - 1;
    else if (character === "'") at = source.indexOf("'", at + 1);
    else if (character === '{') depth++;
    else if (character === '}' && depth-- === 0) return at;
  }
  throw new Error('an expression does not end');
}

/** Splits an expression at a mark that is outside of brackets, literals, comments, `?.` and `??`. */
export function splitAt(expression: string, mark: string): string[] {
  const parts: string[] = [];
  let depth = 0;
  let from = 0;
  for (let at = 0; at < expression.length && depth >= 0; at++) {
    const character = expression[at] as string;
    if (character === '`') at = readTemplate(expression, at + 1).end - 1;
    else if (character === "'") at = expression.indexOf("'", at + 1);
    else if (character === '/' && expression[at + 1] === '/') {
      const end = expression.indexOf('\n', at);
      if (end < 0) break;
      at = end;
    } else if ('([{'.includes(character)) depth++;
    else if (')]}'.includes(character)) depth--;
    else if (character === '?' && '.?'.includes(expression[at + 1] ?? ' ')) at++;
    else if (character === mark && depth === 0) {
      parts.push(expression.slice(from, at));
      from = at + 1;
      if (mark === ';') return parts;
    }
  }
  return [...parts, expression.slice(from)];
}
