/**
 * Finds the texts of an expression.
 *
 * `{name}` stands for a value that only a run knows.
 *
 * It follows constants, conditions, tables of texts and functions that return a text, also into other files. It gives
 * up at anything else: an empty list then means that the code has no text for the expression.
 */
import { nodeAt, nodesAt, type SyntaxNode } from '../mutation/syntax-tree.ts';
import {
  calledName,
  functionsAround,
  isFunction,
  nameOf,
  parameterNames,
  type SourceFile,
} from './source-files.ts';

/** A node with the file that it stands in. */
interface Place {
  readonly file: SourceFile;
  readonly node: SyntaxNode;
}

/** Deeper than any message of ours is made; ends circles of functions that call each other. */
const DEPTH_MAX = 6;
/** A message with more variants is shown with placeholders. */
const VARIANT_COUNT_MAX = 24;

const WRAPPERS: ReadonlySet<string> = new Set([
  'TSAsExpression',
  'TSSatisfiesExpression',
  'TSNonNullExpression',
  'ParenthesizedExpression',
  'ChainExpression',
  'AwaitExpression',
]);

/** Gives the texts of expressions in a set of files. */
export class MessageTexts {
  readonly #files: ReadonlyMap<string, SourceFile>;

  /** @param files - by their paths; imports are followed within them. */
  constructor(files: ReadonlyMap<string, SourceFile>) {
    this.#files = files;
  }

  /** @returns each text that the expression can have; an empty list if the code has no text for it. */
  of(file: SourceFile, node: SyntaxNode, depth = 0): string[] {
    if (depth > DEPTH_MAX) return [];
    const next = (child: SyntaxNode | undefined): string[] =>
      child === undefined ? [] : this.of(file, child, depth + 1);
    if (WRAPPERS.has(node.type))
      return next(nodeAt(node, 'expression') ?? nodeAt(node, 'argument'));
    switch (node.type) {
      case 'Literal':
        return typeof node['value'] === 'string' ? [node['value']] : [];
      case 'TemplateLiteral':
        return this.#ofTemplate(file, node, depth);
      case 'BinaryExpression':
        return node['operator'] === '+' ? this.#ofSum(file, node, depth) : [];
      case 'ConditionalExpression':
        return unique([...next(nodeAt(node, 'consequent')), ...next(nodeAt(node, 'alternate'))]);
      case 'LogicalExpression':
        return unique([
          ...(node['operator'] === '&&' ? [] : next(nodeAt(node, 'left'))),
          ...next(nodeAt(node, 'right')),
        ]);
      case 'Identifier':
        return this.#ofName(file, node, depth);
      case 'MemberExpression':
        return this.#ofMember(file, node, depth);
      case 'CallExpression':
        return this.#ofCall(file, node, depth);
      default:
        return [];
    }
  }

  /** The node that declares a name, as it is seen from `from`: its value, or the function itself. */
  declaration(file: SourceFile, name: string, from?: SyntaxNode): Place | undefined {
    const known = file.declarations.get(name) ?? [];
    const around = from === undefined ? [] : functionsAround(file, from);
    if (around.some((each) => parameterNames(each).includes(name))) return undefined;
    const inner = known.find((each) => {
      const [scope] = functionsAround(file, each);
      return scope !== undefined && around.includes(scope);
    });
    const node = inner ?? known.find((each) => functionsAround(file, each).length === 0);
    if (node !== undefined) return { file, node };
    const imported = file.imported.get(name);
    const target = imported && this.#files.get(imported.path);
    return target && this.declaration(target, imported?.name ?? name);
  }

  #ofTemplate(file: SourceFile, node: SyntaxNode, depth: number): string[] {
    const expressions = nodesAt(node, 'expressions');
    const parts = nodesAt(node, 'quasis').map(
      (quasi) => (quasi['value'] as { cooked: string }).cooked,
    );
    return parts.slice(1).reduce<string[]>(
      (texts, part, index) => {
        const expression = expressions[index] as SyntaxNode;
        const inner = this.of(file, expression, depth + 1);
        const shown = inner.length === 0 ? [`{${placeholder(expression)}}`] : [joined(inner)];
        return texts.flatMap((text) => shown.map((each) => text + each + part));
      },
      [parts[0] ?? ''],
    );
  }

  #ofSum(file: SourceFile, node: SyntaxNode, depth: number): string[] {
    const [left, right] = (['left', 'right'] as const).map((side) => nodeAt(node, side));
    if (left === undefined || right === undefined) return [];
    const texts = [left, right].map((side) => this.of(file, side, depth + 1));
    if (texts.every((each) => each.length === 0)) return [];
    const [before, after] = texts.map((each, index) =>
      each.length > 0 ? each : [`{${placeholder(index === 0 ? left : right)}}`],
    );
    return (before ?? []).flatMap((text) => (after ?? []).map((rest) => text + rest));
  }

  #ofName(file: SourceFile, node: SyntaxNode, depth: number): string[] {
    const found = this.declaration(file, nameOf(node) ?? '', node);
    const value = found && nodeAt(found.node, 'init');
    if (found === undefined || value === undefined || isFunction(value)) return [];
    return this.of(found.file, value, depth + 1);
  }

  /** `TEXTS.one`, `TEXTS[code]`. */
  #ofMember(file: SourceFile, node: SyntaxNode, depth: number): string[] {
    const table = nodeAt(node, 'object');
    if (table === undefined) return [];
    const key = node['computed'] === true ? undefined : nameOf(nodeAt(node, 'property'));
    return this.#ofTable(file, table, key, depth);
  }

  /** @param key - undefined: any of the table's. */
  #ofTable(file: SourceFile, table: SyntaxNode, key: string | undefined, depth: number): string[] {
    const found = this.declaration(file, nameOf(table) ?? '', table);
    let value = found && nodeAt(found.node, 'init');
    while (value !== undefined && WRAPPERS.has(value.type)) value = nodeAt(value, 'expression');
    if (found === undefined || value?.type !== 'ObjectExpression') return [];
    const members = nodesAt(value, 'properties').filter(
      (member) => key === undefined || nameOf(nodeAt(member, 'key')) === key,
    );
    return unique(
      members.flatMap((member) => {
        const text = nodeAt(member, 'value');
        return text === undefined ? [] : this.of(found.file, text, depth + 1);
      }),
    );
  }

  #ofCall(file: SourceFile, node: SyntaxNode, depth: number): string[] {
    const callee = nodeAt(node, 'callee');
    const [first] = nodesAt(node, 'arguments');
    const name = calledName(node) ?? '';
    if (callee?.type === 'MemberExpression') {
      const object = nodeAt(callee, 'object');
      if (object !== undefined && ['trim', 'trimEnd', 'replace', 'slice'].includes(name))
        return this.of(file, object, depth + 1);
      if (object?.type === 'ArrayExpression' && name === 'join')
        return this.#ofList(file, object, first, depth);
      if (!name.startsWith('#')) return [];
    }
    const found = this.declaration(file, name, node);
    return found === undefined ? [] : unique(this.returned(found, depth + 1));
  }

  #ofList(file: SourceFile, list: SyntaxNode, between: SyntaxNode | undefined, depth: number) {
    const separator = typeof between?.['value'] === 'string' ? between['value'] : ',';
    const texts = nodesAt(list, 'elements').map((element) => {
      const inner = this.of(file, element, depth + 1);
      return inner.length === 0 ? `{${placeholder(element)}}` : joined(inner);
    });
    return texts.some((text) => !/^\{\w+\}$/.test(text)) ? [texts.join(separator)] : [];
  }

  /** The texts that a function returns. */
  returned({ file, node }: Place, depth = 0): string[] {
    const body = [node, nodeAt(node, 'init'), nodeAt(node, 'value')].find(
      (each): each is SyntaxNode => each !== undefined && isFunction(each),
    );
    const block = body && nodeAt(body, 'body');
    if (body === undefined || block === undefined) return [];
    if (block.type !== 'BlockStatement') return this.of(file, block, depth);
    return file.nodes
      .filter((each) => each.type === 'ReturnStatement' && functionsAround(file, each)[0] === body)
      .flatMap((each) => {
        const value = nodeAt(each, 'argument');
        return value === undefined ? [] : this.of(file, value, depth);
      });
  }
}

/** The text in braces for a value that only a run knows: the last name of its expression. */
function placeholder(node: SyntaxNode): string {
  switch (node.type) {
    case 'Identifier':
    case 'PrivateIdentifier':
      return String(node['name']);
    case 'MemberExpression': {
      const property = nodeAt(node, 'property');
      const isNamed = node['computed'] !== true && property !== undefined;
      const inner = nodeAt(node, isNamed ? 'property' : 'object');
      return inner === undefined ? 'value' : placeholder(inner);
    }
    case 'CallExpression': {
      const [first] = nodesAt(node, 'arguments');
      const callee = nodeAt(node, 'callee');
      if (callee?.type === 'MemberExpression') {
        const object = nodeAt(callee, 'object');
        const shown = first !== undefined && nameOf(object) !== undefined ? first : object;
        if (shown !== undefined && !isFunction(shown) && shown.type !== 'Literal')
          return placeholder(shown);
        return object === undefined ? 'value' : placeholder(object);
      }
      return first === undefined || isFunction(first)
        ? (nameOf(callee) ?? 'value')
        : placeholder(first);
    }
    case 'BinaryExpression': {
      const sides = [nodeAt(node, 'left'), nodeAt(node, 'right')];
      const named = sides.find((side) => side !== undefined && side.type !== 'Literal');
      return named === undefined ? 'value' : placeholder(named);
    }
    case 'ConditionalExpression':
      return placeholder(nodeAt(node, 'consequent') ?? node);
    case 'LogicalExpression':
      return placeholder(nodeAt(node, 'left') ?? node);
    default: {
      const inner = nodeAt(node, 'expression') ?? nodeAt(node, 'argument');
      return inner === undefined ? 'value' : placeholder(inner);
    }
  }
}

const unique = (texts: readonly string[]): string[] => [...new Set(texts)];

/** The variants of a part of a text, such as `[entry|entries]`. */
function joined(texts: readonly string[]): string {
  const [first = '', ...others] = unique(texts);
  if (others.length === 0) return first;
  return others.length < VARIANT_COUNT_MAX ? `[${[first, ...others].join('|')}]` : '{…}';
}
