/**
 * Turns the plugin's description of the API into the published one.
 *
 * Answers are open, requests show their examples and whether they need a body, and every POST and PUT takes an
 * `Idempotency-Key`.
 */
import { PROBLEMS } from '../http/problem.ts';
import { OPERATIONS } from './operation-names.ts';
import type { ApiDocument, ApiOperation, RequestBody } from './reference-page.ts';

export function asPublished(document: ApiDocument): ApiDocument {
  const schemas = Object.entries(document.components?.schemas ?? {}).map(([name, schema]) => [
    name,
    isOfRequests(name) ? withDefaultsTold(withExamples(schema)) : opened(schema),
  ]);
  const paths = Object.entries(document.paths).map(([path, methods]) => [
    path,
    Object.fromEntries(
      Object.entries(methods).map(([method, operation]) => [
        method,
        {
          ...withExamples(operation),
          ...(operation.requestBody && {
            requestBody: withNeed(withDefaultsTold(withExamples(operation.requestBody)), document),
          }),
          ...(TAKES_KEY.includes(method) && {
            parameters: [...withExamples(operation.parameters ?? []), KEY_PARAMETER],
          }),
          ...namedAs(`${method.toUpperCase()} ${path}`, operation),
        },
      ]),
    ),
  ]);
  return {
    ...document,
    paths: Object.fromEntries(paths),
    components: { ...document.components, schemas: Object.fromEntries(schemas) },
  };
}

/** The plugin calls every body required. One that may be null may be left out as well: an empty body is no body. */
function withNeed(body: RequestBody, { components }: ApiDocument): RequestBody {
  const given = body.content['application/json']?.schema;
  const schema = components?.schemas?.[given?.$ref?.split('/').at(-1) ?? ''] ?? given;
  return { ...body, required: !(schema?.anyOf ?? []).some(({ type }) => type === 'null') };
}

const TAKES_KEY: readonly string[] = ['post', 'put'];

/** Added here: in the schema of a route it would be the only header that the handler sees. */
const KEY_PARAMETER = {
  name: 'Idempotency-Key',
  in: 'header',
  required: false,
  description: 'One key, one effect.',
  schema: { type: 'string', minLength: 1, maxLength: 255, pattern: '^[!-~]+$' },
};

/** The converter's names of request schemas. */
const isOfRequests = (name: string): boolean => name.endsWith('Input');

/**
 * Answers may gain fields, so the description does not call them complete, as the converter does: a client that checks
 * them would refuse the fields of a later version. The tests hold answers to the stricter one.
 */
const opened = <Part>(part: Part): Part =>
  changedWithin(part, (object) => {
    const changed = { ...object };
    if (changed['additionalProperties'] === false) delete changed['additionalProperties'];
    return changed;
  });

const problem = (description: string) => ({
  description,
  content: { 'application/problem+json': { schema: { $ref: '#/components/schemas/Problem' } } },
});

/** Decided before the route is known. 400 is for a token beside a cookie, and for a head that cannot be read. */
const OF_ANY_OPERATION = {
  400: problem(PROBLEMS.invalid_request.meaning),
  429: problem(PROBLEMS.rate_limited.meaning),
  431: problem(PROBLEMS.headers_too_large.meaning),
};

function namedAs(route: string, operation: ApiOperation): Partial<ApiOperation> {
  const [operationId, answer] = OPERATIONS[route] ?? [];
  if (operationId === undefined || answer === undefined)
    throw new Error(`operation-names.ts has no name for ${route}`);
  const responses = Object.entries(operation.responses ?? {}).map(([status, response]) => [
    status,
    status.startsWith('2') ? { ...response, description: answer } : response,
  ]);
  return {
    operationId,
    // An operation is described, if only by its summary: some viewers show only the description.
    description: operation.description ?? `${operation.summary}.`,
    responses: opened({ ...OF_ANY_OPERATION, ...Object.fromEntries(responses) }),
  };
}

/**
 * Schemas of requests have their examples as `requestExamples`: the converter takes `examples` for values that a schema
 * has made, and leaves them out if the schema transforms its input.
 */
const withExamples = <Part>(part: Part): Part =>
  changedWithin(part, ({ requestExamples, ...rest }) =>
    requestExamples === undefined ? rest : { ...rest, examples: requestExamples },
  );

/**
 * Generators of types take a member with a default for one that is always there, and then a body in its smallest form does
 * not compile. So the defaults of a body are in its descriptions.
 */
const withDefaultsTold = <Part>(part: Part): Part =>
  changedWithin(part, (schema) => {
    const { default: fallback, description, ...rest } = schema;
    // A member may be called `default`, or `type`, too.
    const isSchema =
      typeof rest['type'] === 'string' ||
      Array.isArray(rest['type']) ||
      Array.isArray(rest['anyOf']);
    if (fallback === undefined || !isSchema) return schema;
    const shown = typeof fallback === 'string' ? fallback : JSON.stringify(fallback);
    const told = shown === '' ? 'Default: empty.' : `Default: \`${shown}\`.`;
    const before = typeof description === 'string' ? `${description} ` : '';
    return { ...rest, description: `${before}${told}` };
  });

const changedWithin = <Part>(
  part: Part,
  change: (object: Readonly<Record<string, unknown>>) => object,
): Part =>
  JSON.parse(JSON.stringify(part), (_key, value: unknown) =>
    typeof value === 'object' && value !== null && !Array.isArray(value)
      ? change(value as Record<string, unknown>)
      : value,
  ) as Part;
