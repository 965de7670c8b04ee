/**
 * Splits a page of Markdown into passages: paragraphs, list items, cells, headings, comments in code.
 *
 * Code, addresses of links and HTML are left out. Used by `check-prose.ts`.
 */
import { CODE, type Passage } from './rules.ts';

/** How a comment begins in the languages of the pages' code blocks. */
const COMMENT_OF: Readonly<Record<string, RegExp>> = {
  sh: /(?:^|\s)#\s(.*)$/,
  bash: /(?:^|\s)#\s(.*)$/,
  yaml: /(?:^|\s)#\s(.*)$/,
  python: /(?:^|\s)#\s(.*)$/,
  ruby: /(?:^|\s)#\s(.*)$/,
  ts: /(?:^|\s)\/\/\s(.*)$/,
  js: /(?:^|\s)\/\/\s(.*)$/,
  go: /(?:^|\s)\/\/\s(.*)$/,
  sql: /(?:^|\s)--\s(.*)$/,
};

/** Replaces code, addresses of links and HTML. Line breaks stay, so lines keep their numbers. */
export function withoutCode(text: string): string {
  const breaks = (code: string): string => `${CODE}${code.replaceAll(/[^\n]/g, '')}`;
  return text
    .replaceAll(/(`+)(?!`)[\s\S]*?[^`]\1(?!`)/g, breaks)
    .replaceAll(/!\[[^\]]*\]\([^)]*\)/g, '')
    .replaceAll(/\]\([^)\s]*\)/g, ']')
    .replaceAll(/<\/?[a-z][^<>\n]*>/gi, '')
    .replaceAll(/\bhttps?:\/\/[^\s)]+/g, CODE);
}

/** @returns the passages of a whole page, with the numbers of their lines. */
export function passagesOfPage(page: string): Passage[] {
  const passages: Passage[] = [];
  let paragraph: { line: number; lines: string[] } | undefined;
  let comment: RegExp | undefined;
  let isCode = false;
  const add = (line: number, text: string): void => {
    // A label such as "**Flags**:" is not part of the sentence after it.
    const label = /^(?:\*\*[^*]+\*\*:|\*\*[^*]+:\*\*)/.exec(text)?.[0] ?? '';
    if (text.trim() !== '') passages.push({ line, text: text.slice(label.length), kind: 'page' });
  };
  const end = (): void => {
    if (paragraph) add(paragraph.line, withoutCode(paragraph.lines.join('\n')));
    paragraph = undefined;
  };
  const lines = page
    .replaceAll(/<!--[\s\S]*?-->/g, (html) => html.replaceAll(/[^\n]/g, ''))
    .split('\n');
  for (const [index, line] of lines.entries()) {
    const number = index + 1;
    const fence = /^\s*```\s*(\w*)/.exec(line);
    if (fence) {
      end();
      isCode = !isCode;
      comment = COMMENT_OF[fence[1] ?? ''];
    } else if (isCode) {
      add(number, withoutCode(comment?.exec(line)?.[1] ?? ''));
    } else if (/^\s*\|/.test(line)) {
      end();
      if (!/^\s*\|[\s|:-]+$/.test(line))
        for (const cell of withoutCode(line.replaceAll('<br>', '|')).split(/(?<!\\)\|/))
          add(number, cell.trim());
    } else if (line.trim() === '') end();
    else {
      const [, marker] = /^\s*(?:>\s?)*([-*+]\s|\d+\.\s|#+\s)?/.exec(line) ?? [];
      if (marker !== undefined) end();
      const text = line.replace(/^\s*(?:>\s?)*(?:[-*+]\s+|\d+\.\s+|#+\s+)?/, '');
      paragraph ??= { line: number, lines: [] };
      paragraph.lines.push(text);
      if (marker?.startsWith('#')) end();
    }
  }
  end();
  return passages;
}
