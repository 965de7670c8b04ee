/**
 * `docs/reference/http-api.md`: every operation of the OpenAPI document that the API serves, by tag. The table of the access
 * tests, which every route of the API must be in, gives callers an operation of the API.
 */
import { OPENERS, type Opener } from '../../packages/api/test/integration/support/access-table.ts';
import { code, page, table } from './markdown.ts';

interface Response {
  readonly description?: string;
  readonly $ref?: string;
}

interface Operation {
  readonly operationId: string;
  readonly tags?: readonly string[];
  readonly summary?: string;
  readonly security?: readonly Readonly<Record<string, unknown>>[];
  readonly servers?: unknown;
  readonly responses: Readonly<Record<string, Response>>;
}

interface Description {
  readonly tags: readonly { readonly name: string; readonly description?: string }[];
  readonly paths: Readonly<Record<string, Readonly<Record<string, Operation>>>>;
  readonly components: { readonly responses: Readonly<Record<string, Response>> };
}

const INTRODUCTION = `The API serves this list with all parameters and bodies at \`/docs\`, and as OpenAPI 3.1 at \`/openapi.json\`. The column
"fails with" has the statuses of failures. [Errors](errors.md#errors-of-the-api) has their codes and the next action.

A role includes the roles before it: \`member\`, \`billing_admin\`, \`account_admin\`. A session in the console has the role of
its user. Every POST and PUT of the API takes an \`Idempotency-Key\`.`;

/** Caller that opens a route of the API. */
const CALLERS: Readonly<Record<Opener, string>> = {
  anybody: 'no credentials, or the credentials that the call itself describes',
  page: 'the pages of the console',
  session: 'a session in the console',
  app_key: 'an app API key',
  member: 'a token, `member`',
  billing_admin: 'a token, `billing_admin`',
  account_admin: 'a token, `account_admin`',
  'usage:write': 'a token with the scope `usage:write`',
  'partners:write': 'a token with the scope `partners:write`',
  'fleet:read': 'a token with the scope `fleet:read`',
};

/** Security scheme of intake → caller. */
const INTAKE_CALLERS: Readonly<Record<string, string>> = {
  write_key: 'a write key',
  site_key: 'a site id and its key',
  app_key: 'an app API key',
};

function callersOf(path: string, method: string, operation: Operation): string {
  const opener = OPENERS.get(`${method} ${path.replaceAll(/\{(\w+)\}/g, ':$1')}`);
  if (operation.servers === undefined && opener !== undefined) return CALLERS[opener];
  const schemes = (operation.security ?? []).flatMap((each) => Object.keys(each));
  if (operation.security === undefined)
    throw new Error(`${method} ${path} does not name its callers`);
  if (schemes.length === 0) return 'no credentials';
  return schemes.map((scheme) => INTAKE_CALLERS[scheme] ?? code(scheme)).join(', or ');
}

/** The description of a response, also if many calls share it. */
const meaningOf = ({ components }: Description, { description, $ref }: Response = {}): string =>
  description ?? components.responses[$ref?.split('/').at(-1) ?? '']?.description ?? '';

function rowOf(
  document: Description,
  path: string,
  method: string,
  operation: Operation,
): string[] {
  const statuses = Object.keys(operation.responses);
  const isTaken = (status: string): boolean => /^[123]/.test(status);
  return [
    code(`${method} ${path}`),
    operation.summary ?? '',
    code(operation.operationId),
    callersOf(path, method, operation),
    statuses
      .filter(isTaken)
      .map((status) => `${code(status)} ${meaningOf(document, operation.responses[status])}`)
      .join(' '),
    statuses.filter((status) => !isTaken(status)).join(', '),
  ];
}

/** The page as Markdown, of the OpenAPI document as text. */
export function httpApiPage(openApi: string): string {
  const document = JSON.parse(openApi) as Description;
  const { tags, paths } = document;
  const operations = Object.entries(paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, operation]) => ({
      tag: operation.tags?.[0],
      row: rowOf(document, path, method.toUpperCase(), operation),
    })),
  );
  const head = ['call', 'effect', 'operationId', 'callers', 'answers', 'fails with'];
  const sections = tags.flatMap(({ name, description = '' }) => {
    const rows = operations.filter(({ tag }) => tag === name).map(({ row }) => row);
    return rows.length === 0 ? [] : [`## ${name}\n\n${description}\n\n${table(head, rows)}`];
  });
  const untagged = operations.filter(({ tag }) => !tags.some(({ name }) => name === tag));
  if (untagged.length > 0) throw new Error(`${untagged[0]?.row[0]} has no tag of the document`);
  return page('HTTP API', INTRODUCTION, ...sections);
}
