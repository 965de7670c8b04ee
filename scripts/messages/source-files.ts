/** Parsed source files, and the lookups that `message-text.ts` needs: enclosing nodes, names, imports. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { importsOf } from '../import-graph.ts';
import {
  childrenOf,
  nodeAt,
  nodesAt,
  parseTypeScript,
  type SyntaxNode,
} from '../mutation/syntax-tree.ts';

/** One file of the checkout with its syntax tree. */
export interface SourceFile {
  /** From the root of the repository. */
  readonly path: string;
  /** Every node, in the order of the text. */
  readonly nodes: readonly SyntaxNode[];
  readonly parentOf: ReadonlyMap<SyntaxNode, SyntaxNode>;
  /** Declared names: variables, functions and methods with the node that declares each. */
  readonly declarations: ReadonlyMap<string, readonly SyntaxNode[]>;
  /** Imported name → the file of this repository that exports it, and its name there. */
  readonly imported: ReadonlyMap<string, { readonly path: string; readonly name: string }>;
}

const FUNCTIONS: ReadonlySet<string> = new Set([
  'FunctionDeclaration',
  'FunctionExpression',
  'ArrowFunctionExpression',
]);

/** True for the three kinds of function; a method's function is a `FunctionExpression`. */
export const isFunction = (node: SyntaxNode): boolean => FUNCTIONS.has(node.type);

/** @throws Error if the file is not TypeScript. */
export function readSourceFile(root: string, path: string): SourceFile {
  const text = readFileSync(join(root, path), 'utf8');
  const nodes: SyntaxNode[] = [];
  const parentOf = new Map<SyntaxNode, SyntaxNode>();
  const visit = (node: SyntaxNode): void => {
    nodes.push(node);
    for (const { child } of childrenOf(node)) {
      parentOf.set(child, node);
      visit(child);
    }
  };
  visit(parseTypeScript(path, text));
  return {
    path,
    nodes,
    parentOf,
    declarations: declarationsIn(nodes),
    imported: importedInto(path, text, nodes),
  };
}

function declarationsIn(nodes: readonly SyntaxNode[]): Map<string, SyntaxNode[]> {
  const found = new Map<string, SyntaxNode[]>();
  for (const node of nodes) {
    const name = declaredName(node);
    if (name === undefined) continue;
    found.set(name, [...(found.get(name) ?? []), node]);
  }
  return found;
}

function declaredName(node: SyntaxNode): string | undefined {
  switch (node.type) {
    case 'VariableDeclarator':
    case 'FunctionDeclaration':
      return nameOf(nodeAt(node, 'id'));
    case 'MethodDefinition':
    case 'PropertyDefinition':
      return nameOf(nodeAt(node, 'key'));
    default:
      return undefined;
  }
}

function importedInto(
  path: string,
  text: string,
  nodes: readonly SyntaxNode[],
): Map<string, { path: string; name: string }> {
  const targets = new Map(importsOf(path, text).map((one) => [one.specifier, one.target]));
  const found = new Map<string, { path: string; name: string }>();
  for (const node of nodes) {
    if (node.type !== 'ImportDeclaration') continue;
    const target = targets.get(String(nodeAt(node, 'source')?.['value']));
    if (target === undefined) continue;
    for (const specifier of nodesAt(node, 'specifiers')) {
      const local = nameOf(nodeAt(specifier, 'local'));
      const name = nameOf(nodeAt(specifier, 'imported'));
      if (local !== undefined && name !== undefined) found.set(local, { path: target, name });
    }
  }
  return found;
}

/** The name of an identifier, private ones with their `#`; undefined for another node. */
export function nameOf(node: SyntaxNode | undefined): string | undefined {
  if (node?.type === 'Identifier') return String(node['name']);
  if (node?.type === 'PrivateIdentifier') return `#${String(node['name'])}`;
  return undefined;
}

/** The name by which a call names its function: `f(…)`, `x.f(…)`, `new F(…)`. */
export function calledName(call: SyntaxNode): string | undefined {
  const callee = nodeAt(call, 'callee');
  return callee?.type === 'MemberExpression' ? nameOf(nodeAt(callee, 'property')) : nameOf(callee);
}

/** The functions around a node, the innermost first. */
export function functionsAround(file: SourceFile, node: SyntaxNode): SyntaxNode[] {
  const found: SyntaxNode[] = [];
  for (let at = file.parentOf.get(node); at !== undefined; at = file.parentOf.get(at))
    if (isFunction(at)) found.push(at);
  return found;
}

/** The name by which a function is called; undefined for one without a name. */
export function functionName(file: SourceFile, node: SyntaxNode): string | undefined {
  const own = nameOf(nodeAt(node, 'id'));
  if (own !== undefined) return own;
  const parent = file.parentOf.get(node);
  return parent && declaredName(parent);
}

/** The names of a function's parameters, `undefined` for a destructured one. */
export const parameterNames = (node: SyntaxNode): (string | undefined)[] =>
  nodesAt(node, 'params').map((parameter) =>
    nameOf(parameter.type === 'AssignmentPattern' ? nodeAt(parameter, 'left') : parameter),
  );
