/**
 * Failures that several operations have in common stand once, under `components`: types that are made from the description
 * are a third smaller. Pure.
 */
import { STATUS_CODES } from 'node:http';
import { PROBLEMS } from '../http/problem.ts';
import type { ApiDocument, ApiOperation } from './reference-page.ts';

type Response = NonNullable<ApiOperation['responses']>[string];

/** An answer of success belongs to its operation, unless this many operations have an equal one. */
const SUCCESS_COUNT_MIN = 10;

/** The document with `components.responses`. */
export function withSharedResponses(document: ApiDocument): object {
  const { paths, webhooks = {} } = document;
  const counts = countEqual([paths, webhooks].flatMap(operationsOf));
  const names = new Map<string, string>();
  const shared: Record<string, Response> = {};
  const share = (status: string, response: Response): object => {
    const text = JSON.stringify(response);
    const count = counts.get(text) ?? 0;
    if (count < (status.startsWith('2') ? SUCCESS_COUNT_MIN : 2)) return response;
    let name = names.get(text);
    if (name === undefined) {
      name = freeName(nameOf(status, response), shared);
      names.set(text, name);
      shared[name] = response;
    }
    return { $ref: `#/components/responses/${name}` };
  };
  return {
    ...document,
    paths: withResponses(paths, share),
    webhooks: withResponses(webhooks, share),
    components: { ...document.components, responses: shared },
  };
}

const operationsOf = (paths: ApiDocument['paths']): ApiOperation[] =>
  Object.values(paths).flatMap((methods) => Object.values(methods));

function countEqual(operations: readonly ApiOperation[]): ReadonlyMap<string, number> {
  const counts = new Map<string, number>();
  for (const { responses = {} } of operations)
    for (const response of Object.values(responses)) {
      const text = JSON.stringify(response);
      counts.set(text, (counts.get(text) ?? 0) + 1);
    }
  return counts;
}

const withResponses = (
  paths: ApiDocument['paths'],
  change: (status: string, response: Response) => object,
): object =>
  mapped(paths, (methods) =>
    mapped(methods, ({ responses = {}, ...operation }) => ({
      ...operation,
      responses: mapped(responses, (response, status) => change(status, response)),
    })),
  );

const mapped = <Value>(
  record: Readonly<Record<string, Value>>,
  change: (value: Value, name: string) => unknown,
): object =>
  Object.fromEntries(Object.entries(record).map(([name, value]) => [name, change(value, name)]));

/** As the table of errors calls it, else as HTTP does. */
function nameOf(status: string, { description }: Response): string {
  const code = Object.entries(PROBLEMS).find(([, { meaning }]) => meaning === description)?.[0];
  return (code ?? STATUS_CODES[status] ?? status)
    .split(/\W+|_/)
    .map((word) => word.charAt(0).toUpperCase() + word.slice(1))
    .join('');
}

function freeName(name: string, taken: object): string {
  for (let count = 1; ; count++) {
    const free = count === 1 ? name : `${name}${count}`;
    if (!(free in taken)) return free;
  }
}
