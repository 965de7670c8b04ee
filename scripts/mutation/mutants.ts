/**
 * The mutants of a file: small changes that a test should notice. Each replaces one range of the text.
 *
 * Operators, conditions, literals, returned values, removed statements, methods that have an opposite, and the SQL in
 * `sql` templates (`sql-mutants.ts`). Types are left alone, and so are texts for people: the messages of errors and of
 * the log, and calls of the logger. A number above 2 is doubled: a test need not notice one millisecond more.
 */
import { childrenOf, nodeAt, nodesAt, parseTypeScript, type SyntaxNode } from './syntax-tree.ts';
import { sqlMutants } from './sql-mutants.ts';

export interface Mutant {
  /** Start and end of the replaced text, in UTF-16 units from the start of the file. */
  readonly start: number;
  readonly end: number;
  readonly replacement: string;
  /** Kind of the change: `condition`, `literal`, … */
  readonly kind: string;
}

/** Of the node that it is made for, unless `replaced` names another. */
type Change = readonly [kind: string, replacement: string, replaced?: SyntaxNode | undefined];

const OPPOSITE_OPERATORS: Readonly<Record<string, readonly string[]>> = {
  '===': ['!=='],
  '!==': ['==='],
  '==': ['!='],
  '!=': ['=='],
  '<': ['<=', '>='],
  '<=': ['<', '>'],
  '>': ['>=', '<='],
  '>=': ['>', '<'],
  '+': ['-'],
  '-': ['+'],
  '*': ['/'],
  '/': ['*'],
  '%': ['*'],
  '**': ['*'],
  '&': ['|'],
  '|': ['&'],
  '^': ['&'],
  '<<': ['>>>'],
  '>>': ['<<'],
  '>>>': ['<<'],
  '+=': ['-='],
  '-=': ['+='],
  '*=': ['/='],
  '/=': ['*='],
  '??=': ['='],
  '||=': ['='],
  '&&=': ['='],
};

/** A map: an object would have an opposite of `toString` too. */
const OPPOSITE_METHODS: ReadonlyMap<string, string> = new Map([
  ['min', 'max'],
  ['max', 'min'],
  ['floor', 'ceil'],
  ['ceil', 'floor'],
  ['some', 'every'],
  ['every', 'some'],
  ['startsWith', 'endsWith'],
  ['endsWith', 'startsWith'],
  ['toUpperCase', 'toLowerCase'],
  ['toLowerCase', 'toUpperCase'],
  ['shift', 'pop'],
  ['pop', 'shift'],
  ['push', 'unshift'],
  ['unshift', 'push'],
  ['find', 'findLast'],
  ['findLast', 'find'],
  ['indexOf', 'lastIndexOf'],
  ['lastIndexOf', 'indexOf'],
]);

/** Calls of a value's method of which the value itself is left. */
const REMOVED_METHODS: ReadonlySet<string> = new Set([
  'filter',
  'toSorted',
  'toReversed',
  'sort',
  'reverse',
  'slice',
  'trim',
  'trimStart',
  'trimEnd',
]);

/**
 * All mutants of a file, in the order of the text, each once.
 *
 * @throws Error if the text is not TypeScript.
 */
export function mutantsOf(path: string, text: string): Mutant[] {
  const mutants = new Map<string, Mutant>();
  visit(parseTypeScript(path, text), []);
  return [...mutants.values()].toSorted((one, other) => one.start - other.start);

  function visit(node: SyntaxNode, parents: readonly SyntaxNode[]): void {
    if (isLeftAlone(node, text)) return;
    for (const [kind, replacement, replaced = node] of changesOf(node, parents, text))
      add({ start: replaced.start, end: replaced.end, replacement, kind });
    if (isSql(node)) for (const mutant of sqlMutants(nodeAt(node, 'quasi'), text)) add(mutant);
    const within = [...parents, node];
    for (const { property, child } of childrenOf(node)) {
      const isName = property === 'key' && node['computed'] !== true;
      if (!isName) visit(child, within);
    }
  }

  function add(mutant: Mutant): void {
    const { start, end, replacement } = mutant;
    if (text.slice(start, end) === replacement) return;
    mutants.set(`${start} ${end} ${replacement}`, mutant);
  }
}

/** The file's text with the mutant in it. */
export const mutate = (text: string, { start, end, replacement }: Mutant): string =>
  text.slice(0, start) + replacement + text.slice(end);

const isSql = (node: SyntaxNode): boolean =>
  node.type === 'TaggedTemplateExpression' && nodeAt(node, 'tag')?.['name'] === 'sql';

/** Types, imports, and texts for people. */
function isLeftAlone(node: SyntaxNode, text: string): boolean {
  const { type } = node;
  if (type.startsWith('TS'))
    return !['TSAsExpression', 'TSNonNullExpression', 'TSSatisfiesExpression'].includes(type);
  if (type === 'ImportDeclaration' || type === 'ExportAllDeclaration') return true;
  if (type === 'ExportNamedDeclaration' && nodeAt(node, 'source')) return true;
  const callee = nodeAt(node, 'callee');
  if (!callee) return false;
  const name = text.slice(callee.start, callee.end);
  if (type === 'NewExpression') return name.endsWith('Error');
  return /(^|[.#])logger\??\.\w+$/.test(name);
}

function changesOf(node: SyntaxNode, parents: readonly SyntaxNode[], text: string): Change[] {
  const source = (part: SyntaxNode | undefined): string =>
    part ? text.slice(part.start, part.end) : '';
  const parent = parents.at(-1);
  switch (node.type) {
    case 'BinaryExpression':
    case 'AssignmentExpression':
      return operatorChanges(node, text);
    case 'LogicalExpression':
      return logicalChanges(node, source);
    case 'UnaryExpression':
      return ['!', '-'].includes(String(node['operator']))
        ? [['condition', source(nodeAt(node, 'argument'))]]
        : [];
    case 'UpdateExpression': {
      const argument = source(nodeAt(node, 'argument'));
      const opposite = node['operator'] === '++' ? '--' : '++';
      return [['operator', node['prefix'] ? `${opposite}${argument}` : `${argument}${opposite}`]];
    }
    case 'IfStatement':
    case 'ConditionalExpression':
      return ['true', 'false'].map((value) => ['condition', value, nodeAt(node, 'test')]);
    case 'WhileStatement':
      return [['condition', 'false', nodeAt(node, 'test')]];
    case 'Literal':
      return literalChanges(node, parent, text);
    case 'TemplateLiteral':
      return parent?.type === 'TaggedTemplateExpression' || source(node) === '``'
        ? []
        : [['literal', '``']];
    case 'ArrayExpression':
      return nodesAt(node, 'elements').length > 0 ? [['literal', '[]']] : [];
    case 'SpreadElement':
      return parent?.type === 'ObjectExpression' ? [['literal', '...{}']] : [];
    case 'ReturnStatement':
      return returnChanges(node);
    case 'ArrowFunctionExpression':
      return returnedByArrow(node);
    case 'ExpressionStatement':
      return isRemovable(node) ? [['removed statement', ';']] : [];
    case 'ContinueStatement':
    case 'BreakStatement':
      return parents.some(({ type }) => type === 'SwitchStatement')
        ? []
        : [['removed statement', ';']];
    case 'ChainExpression':
    case 'CallExpression':
      return callChanges(node, source);
    default:
      return [];
  }
}

function operatorChanges(node: SyntaxNode, text: string): Change[] {
  const operator = String(node['operator']);
  const left = nodeAt(node, 'left');
  const right = nodeAt(node, 'right');
  if (!left || !right) return [];
  // Of two texts there is no difference to compute: the result is NaN, which any test notices.
  if (operator.startsWith('+') && [left, right].some(isText)) return [];
  return (OPPOSITE_OPERATORS[operator] ?? []).map((opposite) => [
    'operator',
    `${text.slice(node.start, left.end)} ${opposite} ${text.slice(right.start, node.end)}`,
  ]);
}

const isText = (node: SyntaxNode): boolean =>
  node.type === 'TemplateLiteral' || (node.type === 'Literal' && typeof node['value'] === 'string');

function logicalChanges(
  node: SyntaxNode,
  source: (part: SyntaxNode | undefined) => string,
): Change[] {
  const left = source(nodeAt(node, 'left'));
  const right = source(nodeAt(node, 'right'));
  if (node['operator'] === '??')
    return [
      ['operator', `(${left})`],
      ['operator', `(${right})`],
    ];
  const opposite = node['operator'] === '&&' ? '||' : '&&';
  return [
    ['operator', `((${left}) ${opposite} (${right}))`],
    ['condition', `(${left})`],
    ['condition', `(${right})`],
  ];
}

function literalChanges(node: SyntaxNode, parent: SyntaxNode | undefined, text: string): Change[] {
  const value = node['value'];
  if (typeof value === 'boolean') return [['literal', String(!value)]];
  if (typeof value === 'string') {
    if (parent?.type === 'ExpressionStatement' || parent?.type === 'ImportExpression') return [];
    return [['literal', value === '' ? "'mutated'" : "''"]];
  }
  if (typeof value === 'bigint') return [['literal', `${value + 1n}n`]];
  if (typeof value !== 'number') return [];
  if (value === 1) return [['literal', '0']];
  return [['literal', value > 2 ? `(${text.slice(node.start, node.end)} * 2)` : `${value + 1}`]];
}

function returnChanges(node: SyntaxNode): Change[] {
  const argument = nodeAt(node, 'argument');
  if (!argument || isPlain(argument)) return [];
  return [['returned value', 'return undefined;']];
}

function returnedByArrow(node: SyntaxNode): Change[] {
  const body = nodeAt(node, 'body');
  if (!body || body.type === 'BlockStatement' || isPlain(body)) return [];
  return [['returned value', '(undefined)', body]];
}

/** Values that other changes are about, and values that are undefined already. */
const isPlain = (node: SyntaxNode): boolean =>
  node.type === 'Literal' || (node.type === 'Identifier' && node['name'] === 'undefined');

function isRemovable(statement: SyntaxNode): boolean {
  const expression = nodeAt(statement, 'expression');
  if (!expression || expression.type === 'Literal') return false;
  const callee = nodeAt(expression, 'callee');
  return callee?.type !== 'Super';
}

function callChanges(node: SyntaxNode, source: (part: SyntaxNode | undefined) => string): Change[] {
  const call = node.type === 'ChainExpression' ? nodeAt(node, 'expression') : node;
  const callee = call && nodeAt(call, 'callee');
  if (callee?.type !== 'MemberExpression' || callee['computed'] === true) return [];
  const property = nodeAt(callee, 'property');
  const name = String(property?.['name']);
  const opposite = OPPOSITE_METHODS.get(name);
  if (opposite !== undefined) return [['method', opposite, property]];
  return REMOVED_METHODS.has(name) ? [['method', source(nodeAt(callee, 'object'))]] : [];
}
