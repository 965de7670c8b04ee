/** The syntax tree of a TypeScript file, as `mutants.ts` walks it. Offsets count UTF-16 units. */
import { parseSync, visitorKeys } from 'oxc-parser';

/** A node of TS-ESTree; its other properties are children or plain values. */
export interface SyntaxNode {
  readonly type: string;
  readonly start: number;
  readonly end: number;
  readonly [property: string]: unknown;
}

/** @throws Error if the text is not TypeScript. */
export function parseTypeScript(path: string, text: string): SyntaxNode {
  const { program, errors } = parseSync(path, text, { sourceType: 'module' });
  if (errors.length > 0) throw new Error(`${path}: ${errors[0]?.message}`);
  return program as unknown as SyntaxNode;
}

/** The direct children with the properties that hold them, in the order of the text. */
export function childrenOf(node: SyntaxNode): { property: string; child: SyntaxNode }[] {
  return (visitorKeys[node.type] ?? []).flatMap((property) =>
    [node[property]].flat().flatMap((child) => (isNode(child) ? [{ property, child }] : [])),
  );
}

export const nodeAt = (node: SyntaxNode, property: string): SyntaxNode | undefined =>
  isNode(node[property]) ? node[property] : undefined;

export const nodesAt = (node: SyntaxNode, property: string): SyntaxNode[] =>
  [node[property]].flat().filter(isNode);

function isNode(value: unknown): value is SyntaxNode {
  return typeof value === 'object' && value !== null && 'type' in value && 'start' in value;
}
