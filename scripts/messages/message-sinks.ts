/** The places of the code that show a text to a person: log lines, errors, issues, answers, terminal lines. */
import { nodeAt, nodesAt, type SyntaxNode } from '../mutation/syntax-tree.ts';
import { calledName, nameOf, type SourceFile } from './source-files.ts';

/** The part of Sluice that shows a message. */
export type MessageKind = 'failure' | 'log' | 'http' | 'issue' | 'value' | 'command' | 'help';

/** One place that shows a text. */
export interface Sink {
  readonly kind: MessageKind;
  readonly text: SyntaxNode;
  /** The second half of the text, after a semicolon. */
  readonly remedy?: SyntaxNode | undefined;
  /** The expression of the code, or of the level of a log line. */
  readonly code?: SyntaxNode | string | undefined;
  /** Log lines: the names of the fields beside the message. */
  readonly fields?: readonly string[];
}

const LEVELS: ReadonlySet<string> = new Set(['warn', 'error', 'fatal']);
const TERMINAL: ReadonlySet<string> = new Set(['line', 'note', 'progress', 'write']);
/** Of commander: the place of the text among the arguments. */
const HELP: Readonly<Record<string, number>> = {
  description: 0,
  argument: 1,
  option: 1,
  requiredOption: 1,
  addHelpText: 1,
  Option: 1,
  Argument: 1,
};
/** Of zod: a rule takes its message as the last argument. */
const RULES: ReadonlySet<string> = new Set(['regex', 'min', 'max', 'refine', 'length', 'includes']);
/** Members of an object that hold a text for a person. */
const TEXT_MEMBERS: ReadonlySet<string> = new Set(['message', 'error', 'problem']);
const CODE_MEMBERS = ['code', 'end', 'outcome', 'reason'];

/** Folders whose lines reach a terminal. */
const OF_TERMINALS = /^(?:packages\/(?:command-line|standalone)\/|scripts\/)/;

/** @returns the texts that the node shows to a person; for most nodes it is empty. */
export function sinksAt(file: SourceFile, node: SyntaxNode): Sink[] {
  switch (node.type) {
    case 'NewExpression':
    case 'CallExpression':
      return sinksOfCall(file, node);
    case 'Property':
      return sinksOfMember(file, node);
    default:
      return [];
  }
}

function sinksOfCall(file: SourceFile, node: SyntaxNode): Sink[] {
  const name = calledName(node) ?? '';
  const args = nodesAt(node, 'arguments');
  const at = (index: number): SyntaxNode[] => args.slice(index, index + 1);
  if (node.type === 'NewExpression' && name === 'AppError')
    return at(1).map((text) => ({ kind: 'failure', text, code: args[0] }));
  if (name === 'problem' && args.length >= 3)
    return at(2).map((text) => ({ kind: 'http', text, code: args[1] }));
  const callee = nodeAt(node, 'callee');
  const receiver = callee?.type === 'MemberExpression' ? receiverOf(callee) : '';
  if (['refuse', 'warn', 'correct'].includes(name) && /draft|^this$/i.test(receiver))
    return at(2).map((text) => ({
      kind: 'issue',
      text,
      code: args[0],
      ...(name === 'correct' && { remedy: args[3] }),
    }));
  if (LEVELS.has(name) && /log(ger)?$/i.test(receiver)) return logLine(name, args);
  if (OF_TERMINALS.test(file.path)) return terminalLines(name, receiver, node, args);
  if (RULES.has(name) && args.length === 2) return at(1).map((text) => ({ kind: 'value', text }));
  return [];
}

function logLine(level: string, args: readonly SyntaxNode[]): Sink[] {
  const [first, second] = args;
  const text = second ?? first;
  if (text === undefined) return [];
  const fields =
    second === undefined || first === undefined
      ? []
      : nodesAt(first, 'properties').flatMap((member) => nameOf(nodeAt(member, 'key')) ?? []);
  return [{ kind: 'log', text, code: level, fields }];
}

function terminalLines(
  name: string,
  receiver: string,
  node: SyntaxNode,
  args: readonly SyntaxNode[],
): Sink[] {
  const helpAt = HELP[name];
  const help = helpAt === undefined ? undefined : args[helpAt];
  if (help !== undefined && (node.type === 'NewExpression' || receiver !== ''))
    return [{ kind: 'help', text: help }];
  const [text] = args;
  if (text === undefined) return [];
  const isLine =
    (TERMINAL.has(name) && receiver !== '') ||
    (receiver === 'console' && (name === 'log' || name === 'error')) ||
    (name === 'error' && receiver === 'command');
  return isLine ? [{ kind: 'command', text }] : [];
}

function sinksOfMember(file: SourceFile, node: SyntaxNode): Sink[] {
  const object = file.parentOf.get(node);
  const key = nameOf(nodeAt(node, 'key')) ?? '';
  const text = nodeAt(node, 'value');
  if (object?.type !== 'ObjectExpression' || text === undefined || !TEXT_MEMBERS.has(key))
    return [];
  const members = nodesAt(object, 'properties');
  const code = CODE_MEMBERS.map((name) =>
    members.find((member) => nameOf(nodeAt(member, 'key')) === name),
  ).find((member) => member !== undefined);
  return [
    { kind: key === 'message' ? 'http' : 'value', text, code: code && nodeAt(code, 'value') },
  ];
}

/** The last name of a method's object: `request.log.warn(…)` gives `log`. */
function receiverOf(callee: SyntaxNode): string {
  let object = nodeAt(callee, 'object');
  if (object?.type === 'CallExpression') object = nodeAt(object, 'callee');
  if (object?.type === 'ThisExpression') return 'this';
  if (object?.type === 'LogicalExpression')
    return receiverOf({ ...object, object: nodeAt(object, 'right') });
  const last = object?.type === 'MemberExpression' ? nodeAt(object, 'property') : object;
  return nameOf(last) ?? (object === undefined ? '' : 'value');
}
