/**
 * Finds every message that a person can meet, in the code: `npm run docs` lists them in `docs/reference/messages.md`.
 *
 * A function that passes a parameter on as a message is itself a place where messages are shown: its callers are
 * searched too, until no such function is new.
 */
import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { nodeAt, nodesAt, type SyntaxNode } from '../mutation/syntax-tree.ts';
import { MessageTexts } from './message-text.ts';
import { type MessageKind, type Sink, sinksAt } from './message-sinks.ts';
import {
  calledName,
  functionName,
  functionsAround,
  parameterNames,
  nameOf,
  readSourceFile,
  type SourceFile,
} from './source-files.ts';

/** One message and the file that makes it. */
export interface Message {
  readonly kind: MessageKind;
  /** Values that only a run knows stand in braces. */
  readonly text: string;
  /** Of the error or issue; the level of a log line; empty if the code does not name it beside the text. */
  readonly code: string;
  readonly fields: readonly string[];
  /** From the root of the repository. */
  readonly path: string;
}

/** A function whose parameters become parts of a message. */
interface Passing {
  readonly path: string;
  readonly name: string;
  /** The parameters that are part of the text, by their places. */
  readonly parts: readonly { readonly name: string; readonly index: number }[];
  /** The text, with the parameters in braces. */
  readonly templates: readonly string[];
  readonly sink: Sink;
  readonly code: string;
  /** The parameter that has the code; undefined if `code` has it. */
  readonly codeIndex: number | undefined;
  /** The number of functions between this one and the place that shows the message. */
  readonly depth: number;
}

/** Deeper than any message of ours is passed on; ends functions that call themselves. */
const DEPTH_MAX = 4;

const PACKAGES = [
  'api',
  'billing-vendor',
  'command-line',
  'database',
  'domain',
  'intake',
  'platform',
  'standalone',
  'worker',
];
/** The programs that an operator runs. */
const PROGRAMS = [
  'act-on-database',
  'backup',
  'identifiers',
  'migrate',
  'parked',
  'purchases',
  'restore',
  'secrets',
  'users',
  'verify',
].map((name) => `scripts/${name}.ts`);

/** Examples of the API's description, and the tools of tests. */
const LEFT_OUT = /\/testing\/|\/openapi\/|\/simulator\/|-under-test\.ts$/;

/** A parameter with such a name may be a part of a message. */
const TEXT_PARAMETER =
  /^(?:message|problem|why|reason|remedy|text|what|whose|none|advice|keyAdvice|done|field)$/;

/** @param root - the folder of the repository. */
export function findMessages(root: string): Message[] {
  const paths = PACKAGES.flatMap((name) =>
    readdirSync(join(root, 'packages', name, 'src'), { recursive: true, encoding: 'utf8' })
      .filter((path) => path.endsWith('.ts'))
      .map((path) => `packages/${name}/src/${path}`),
  ).filter((path) => !LEFT_OUT.test(path));
  const files = [...paths, ...PROGRAMS].toSorted().map((path) => readSourceFile(root, path));
  return messagesIn(files);
}

/** @param files - in the order in which their messages are listed. */
export function messagesIn(files: readonly SourceFile[]): Message[] {
  const texts = new MessageTexts(new Map(files.map((file) => [file.path, file])));
  const passing = new Map<string, Passing>();
  const found = new Map<string, Message>();
  const calls = callsByName(files);
  const note = (
    file: SourceFile,
    node: SyntaxNode,
    sink: Sink,
    templates: readonly string[],
    code: string,
    depth = 0,
  ): void => {
    const one = depth < DEPTH_MAX ? passingOf(file, node, sink, templates, code) : undefined;
    if (one !== undefined) {
      passing.set(JSON.stringify([one.path, one.name, templates, code]), { ...one, depth });
      return;
    }
    for (const template of templates) {
      const text = template.trim();
      if (!isSentence(text)) continue;
      const message = { kind: sink.kind, text, code, fields: sink.fields ?? [], path: file.path };
      found.set(JSON.stringify([message.kind, code, text, file.path]), message);
    }
  };
  for (const file of files) {
    for (const node of file.nodes) {
      for (const sink of [...sinksAt(file, node), ...returnedAt(file, node)])
        note(file, node, sink, textsOf(texts, file, sink), codeOf(texts, file, sink.code));
    }
  }
  for (let known = 0; known < passing.size;) {
    const next = [...passing.values()].slice(known);
    known = passing.size;
    for (const one of next) {
      for (const { file, node } of callsOf(calls, one)) {
        const args = nodesAt(node, 'arguments');
        const own = one.codeIndex === undefined ? undefined : args[one.codeIndex];
        const code = own === undefined ? one.code : codeOf(texts, file, own);
        const sink = { ...one.sink, ...(own !== undefined && { code: own }) };
        note(file, node, sink, filled(texts, file, one, args), code, one.depth + 1);
      }
    }
  }
  return [...found.values()];
}

/** The texts of a function's message with the arguments of one call in their places. */
function filled(
  texts: MessageTexts,
  file: SourceFile,
  { parts, templates }: Passing,
  args: readonly SyntaxNode[],
): string[] {
  return parts.reduce<string[]>(
    (before, { name, index }) => {
      const argument = args[index];
      const given = argument === undefined ? [] : texts.of(file, argument);
      const own = argument && nameOf(argument);
      const shown = given.length > 0 ? given : [`{${own ?? name}}`];
      return before.flatMap((template) =>
        shown.map((text) => template.replaceAll(`{${name}}`, () => text)),
      );
    },
    [...templates],
  );
}

/** A remedy follows its problem after a semicolon. */
function textsOf(texts: MessageTexts, file: SourceFile, { text, remedy }: Sink): string[] {
  const problems = orNamed(texts.of(file, text), text);
  if (remedy === undefined) return problems;
  return problems.flatMap((problem) =>
    orNamed(texts.of(file, remedy), remedy).map((rest) => `${problem}; ${rest}`),
  );
}

/** A text that is a name alone may be a parameter: it stays, in braces. */
function orNamed(texts: string[], node: SyntaxNode): string[] {
  const name = nameOf(node);
  return texts.length > 0 || name === undefined ? texts : [`{${name}}`];
}

/** Functions named `why…` return the reason of a refusal. */
function returnedAt(file: SourceFile, node: SyntaxNode): Sink[] {
  const text = node.type === 'ReturnStatement' ? nodeAt(node, 'argument') : undefined;
  const [around] = text === undefined ? [] : functionsAround(file, node);
  if (text === undefined || around === undefined) return [];
  return /^why[A-Z]/.test(functionName(file, around) ?? '') ? [{ kind: 'value', text }] : [];
}

/** More than a code: two words with a blank between them outside the braces. */
const isSentence = (text: string): boolean =>
  /\p{L}{2,}/u.test(text.replaceAll(/\{[^}]*\}/g, '')) && /\s/.test(text.trim());

function codeOf(
  texts: MessageTexts,
  file: SourceFile,
  code: SyntaxNode | string | undefined,
): string {
  if (code === undefined || typeof code === 'string') return code ?? '';
  return texts.of(file, code).join(', ');
}

/** The nearest function around a sink that passes parameters on to it; undefined if the text is complete. */
function passingOf(
  file: SourceFile,
  node: SyntaxNode,
  sink: Sink,
  templates: readonly string[],
  code: string,
): Omit<Passing, 'depth'> | undefined {
  for (const around of functionsAround(file, node)) {
    const name = functionName(file, around);
    if (name === undefined) continue;
    const parameters = parameterNames(around);
    const parts = parameters.flatMap((parameter, index) =>
      parameter !== undefined &&
      templates.some(
        (text) =>
          text === `{${parameter}}` ||
          (TEXT_PARAMETER.test(parameter) && text.includes(`{${parameter}}`)),
      )
        ? [{ name: parameter, index }]
        : [],
    );
    if (parts.length === 0) continue;
    const codeName = typeof sink.code === 'object' ? nameOf(sink.code) : undefined;
    const codeAt = codeName === undefined ? -1 : parameters.indexOf(codeName);
    const codeIndex = codeAt < 0 ? undefined : codeAt;
    return { path: file.path, name, parts, templates, sink, code, codeIndex };
  }
  return undefined;
}

interface Call {
  readonly file: SourceFile;
  readonly node: SyntaxNode;
}

/** Every call and `new` by the name that it uses. */
function callsByName(files: readonly SourceFile[]): Map<string, Call[]> {
  const found = new Map<string, Call[]>();
  for (const file of files) {
    for (const node of file.nodes) {
      if (node.type !== 'CallExpression' && node.type !== 'NewExpression') continue;
      const name = calledName(node) ?? '';
      const calls = found.get(name);
      if (calls === undefined) found.set(name, [{ file, node }]);
      else calls.push({ file, node });
    }
  }
  return found;
}

/** The calls of a function, in its own file and in the files that import it by its name. */
const callsOf = (calls: ReadonlyMap<string, readonly Call[]>, { path, name }: Passing): Call[] =>
  (calls.get(name) ?? []).filter(({ file }) => {
    const imported = file.imported.get(name);
    return imported === undefined ? file.path === path : imported.path === path;
  });
