/** Counts which parts of a file an input reaches: the beginning of every block, branch and right-hand side sets a flag of its own. */
import { registerHooks, stripTypeScriptTypes } from 'node:module';
import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { childrenOf, nodeAt, parseTypeScript, type SyntaxNode } from '../mutation/syntax-tree.ts';

/** As many flags as all instrumented files have; each is 1 once its part was reached. */
const REACHED_MAX = 65_536;
export const reached = new Uint8Array(REACHED_MAX);
let flagCount = 0;

/** Of the flags that exist: all 65,536 took nine tenths of a run. */
export function countReached(): number {
  const end = Math.min(flagCount, REACHED_MAX);
  let count = 0;
  for (let index = 0; index < end; index++) count += reached[index] as number;
  return count;
}

/** Files whose address ends like one of these are instrumented when they are loaded. Call it before they are. */
export function instrumentOnLoad(ends: readonly string[]): void {
  (globalThis as { reachedParts?: Uint8Array }).reachedParts = reached;
  registerHooks({
    load(url, context, nextLoad) {
      if (!ends.some((end) => url.endsWith(end))) return nextLoad(url, context);
      const path = fileURLToPath(url);
      const text = instrument(path, readFileSync(path, 'utf8'));
      return { format: 'module', source: stripTypeScriptTypes(text), shortCircuit: true };
    },
  });
}

const setNextFlag = (): string => `globalThis.reachedParts[${flagCount++ % REACHED_MAX}] = 1`;

/**
 * @param flag - makes the expression that notes the next part.
 * @returns the text, still TypeScript or AssemblyScript, with its flags.
 */
export function instrument(path: string, text: string, flag: () => string = setNextFlag): string {
  const insertions: { at: number; text: string }[] = [];
  visit(parseTypeScript(path, text));
  return insertions
    .toSorted((one, other) => other.at - one.at)
    .reduce((done, { at, text: added }) => done.slice(0, at) + added + done.slice(at), text);

  function visit(node: SyntaxNode): void {
    if (node.type === 'BlockStatement')
      insertions.push({ at: node.start + 1, text: ` ${flag()}; ` });
    if (node.type === 'SwitchCase') {
      const [first] = childrenOf(node).filter(({ property }) => property === 'consequent');
      if (first) insertions.push({ at: first.child.start, text: `${flag()}; ` });
    }
    if (node.type === 'ConditionalExpression') {
      wrap(nodeAt(node, 'consequent'));
      wrap(nodeAt(node, 'alternate'));
    }
    if (node.type === 'LogicalExpression') wrap(nodeAt(node, 'right'));
    if (node.type === 'IfStatement') {
      begin(nodeAt(node, 'consequent'));
      begin(nodeAt(node, 'alternate'));
    }
    if (node.type === 'WhileStatement' || node.type === 'ForStatement') begin(nodeAt(node, 'body'));
    for (const { child } of childrenOf(node)) if (!child.type.startsWith('TSType')) visit(child);
  }

  /** Of the branch of an `if`, or the body of a loop, without braces. */
  function begin(branch: SyntaxNode | undefined): void {
    if (!branch || branch.type === 'BlockStatement' || branch.type === 'IfStatement') return;
    insertions.push({ at: branch.start, text: `{ ${flag()}; ` }, { at: branch.end, text: ' }' });
  }

  function wrap(part: SyntaxNode | undefined): void {
    if (!part) return;
    insertions.push({ at: part.start, text: `(${flag()}, ` }, { at: part.end, text: ')' });
  }
}
