/**
 * Reads the prose out of code: comments, file headers, messages and the names of tests.
 *
 * A message is a string or template of three words or more that is not SQL. Used by `check-prose.ts`.
 */
import { parseSync, visitorKeys } from 'oxc-parser';
import type { Passage } from './rules.ts';
import { withoutCode } from './texts-of-pages.ts';

interface Node {
  readonly type: string;
  readonly start: number;
  readonly end: number;
}

interface Comment {
  readonly start: number;
  readonly end: number;
  readonly text: string;
}

/** A tag of TSDoc with its name: the prose begins after it. */
const TAG =
  /^@(?:param\s+\S+(?:\s+-)?|returns|throws|example|default|see|typedef|type|template)\s*/;

/** @param path - from the root; a file below `test` counts only the names of its tests as messages. */
export function passagesOfScript(path: string, code: string): Passage[] {
  const { program, comments } = parseSync(path, code);
  const blocks = joinLines(
    code,
    comments.map((comment) => ({ ...comment, text: comment.value })),
  );
  const isTest = path.includes('/test/');
  const [first] = blocks;
  const hasHeader = first !== undefined && /^(?:#!.*\n)?\s*$/.test(code.slice(0, first.start));
  return [
    ...blocks.flatMap((block) =>
      passagesOfComment(code, block, hasHeader && block === first ? 'header' : 'comment'),
    ),
    ...messagesOf(program, code, isTest),
  ];
}

/** Code in a comment with `#`: an indented line, or a key with its value. */
const CODE_IN_COMMENT = /^\s{2,}|^[A-Z_]+: |^\w+: [{[]/;

/** Comments that begin with `#`, of YAML, Dockerfiles and the settings of servers. Code in them is left out. */
export function passagesOfHashComments(code: string): Passage[] {
  const passages: Passage[] = [];
  let block: { line: number; lines: string[] } | undefined;
  const end = (): void => {
    if (block)
      passages.push({
        line: block.line,
        text: withoutCode(block.lines.join('\n')),
        kind: 'comment',
      });
    block = undefined;
  };
  for (const [index, line] of code.split('\n').entries()) {
    const [, text] = /(?:^|\s)#(?!!)\s?(.*)$/.exec(line) ?? [];
    if (text === undefined || text.trim() === '' || CODE_IN_COMMENT.test(text)) end();
    else {
      if (!/^\s*#/.test(line)) end();
      block ??= { line: index + 1, lines: [] };
      block.lines.push(text);
    }
  }
  end();
  return passages;
}

/** Line comments on neighbouring lines are one text. */
function joinLines(code: string, comments: readonly (Comment & { type: string })[]): Comment[] {
  const joined: Comment[] = [];
  let isLine = false;
  for (const { type, start, end, text } of comments) {
    const last = joined.at(-1);
    const isNext =
      last && isLine && type === 'Line' && /^\n[ \t]*$/.test(code.slice(last.end, start));
    if (isNext)
      joined[joined.length - 1] = { start: last.start, end, text: `${last.text}\n${text}` };
    else joined.push({ start, end, text });
    isLine = type === 'Line';
  }
  return joined;
}

function passagesOfComment(code: string, comment: Comment, kind: Passage['kind']): Passage[] {
  if (/^[*\s]*(?:oxlint|eslint|@ts-|<reference|@vitest)/.test(comment.text)) return [];
  const passages: Passage[] = [];
  let line = lineOf(code, comment.start);
  let lines: string[] = [];
  let isExample = false;
  const end = (): void => {
    const text = withoutCode(lines.join('\n').replaceAll(/\{@link\s+[^}]*\}/g, '`x`'));
    if (text.trim() !== '')
      passages.push({
        line: line - lines.length,
        text,
        kind: passages.length === 0 ? kind : 'comment',
      });
    lines = [];
  };
  for (const raw of comment.text.replace(/^\*/, '').split('\n')) {
    const text = raw.replace(/^\s*\*? ?/, '').trimEnd();
    if (text.startsWith('@')) end();
    if (text.startsWith('```')) isExample = !isExample;
    // A list has one passage an item.
    else if (/^\s*(?:-|\d+\.)\s/.test(text) && kind !== 'header') end();
    lines.push(isExample || text.startsWith('```') ? '' : text.replace(TAG, ''));
    line++;
  }
  end();
  return passages;
}

function messagesOf(program: object, code: string, isTest: boolean): Passage[] {
  const passages: Passage[] = [];
  const visit = (node: Node, isName: boolean): void => {
    const text = textOf(node, code);
    if (text !== undefined) {
      if ((!isTest || isName) && isProse(text))
        passages.push({ line: lineOf(code, node.start), text: withoutCode(text), kind: 'message' });
      if (node.type !== 'TemplateLiteral') return;
    }
    if (/^(?:Import|ExportAll)/.test(node.type) || node.type === 'TaggedTemplateExpression') return;
    const isTestCall =
      node.type === 'CallExpression' && /^(?:test|it|describe)\b/.test(code.slice(node.start));
    for (const key of visitorKeys[node.type] ?? [])
      for (const child of [(node as unknown as Record<string, unknown>)[key]].flat())
        if (child !== null && typeof child === 'object')
          visit(child as Node, isTestCall && key === 'arguments');
  };
  visit(program as Node, false);
  return passages;
}

function textOf(node: Node, code: string): string | undefined {
  const { value, quasis } = node as unknown as {
    value?: unknown;
    quasis?: { value: { cooked: string } }[];
  };
  if ((node.type === 'Literal' || node.type === 'JSXText') && typeof value === 'string')
    return value;
  if (node.type === 'TemplateLiteral') return quasis?.map((part) => part.value.cooked).join('`…`');
  if (node.type === 'BinaryExpression' && /^['"`]/.test(code[node.start] ?? ''))
    return joinedText(node);
  return undefined;
}

/** Of strings that `+` joins, to a sentence that spans lines. */
function joinedText(node: Node): string | undefined {
  const { operator, left, right, value } = node as unknown as {
    operator?: string;
    left?: Node;
    right?: Node;
    value?: unknown;
  };
  if (node.type === 'Literal') return typeof value === 'string' ? value : '`…`';
  if (operator !== '+' || !left || !right) return '`…`';
  return `${joinedText(left)}${joinedText(right)}`;
}

function isProse(text: string): boolean {
  const words = text
    .split(/\s+/)
    .filter((word) => /^[("']?[\p{L}`][\p{L}'’`…-]*[.,:;?!)"']*$/u.test(word));
  return (
    words.length >= 3 &&
    !/\b(?:select|insert|update|delete|from|create|with)\b[\s\S]*\b(?:where|into|table|values)\b/i.test(
      text,
    )
  );
}

function lineOf(code: string, offset: number): number {
  let line = 1;
  for (let at = code.indexOf('\n'); at !== -1 && at < offset; at = code.indexOf('\n', at + 1))
    line++;
  return line;
}
