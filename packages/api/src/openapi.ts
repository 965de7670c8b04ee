/**
 * The API's description, made from the schemas that check it: OpenAPI 3.1 at `/openapi.json` and a
 * reference page at `/docs`. Both are rendered once, for the first who asks: few processes
 * ever are.
 */
import swagger from '@fastify/swagger';
import {
  createJsonSchemaTransform,
  createJsonSchemaTransformObject,
} from 'fastify-type-provider-zod';
import { z } from 'zod';
import { EVENT_SCHEMAS } from './event-schemas.ts';
import {
  CONTENT_SECURITY_POLICY,
  renderReferencePage,
  type ApiDocument,
} from './reference-page.ts';
import type { ApiServer } from './server.ts';

const DESCRIPTION =
  'People, activities and reporting webhooks of one workspace: the one whose key you send. ' +
  'The account, its users and its credentials with a token of a service account. ' +
  'Fields of a body that are not described are ignored, or refused where the body says so; parameters that are not ' +
  'described are ignored. Answers may gain fields. ' +
  'Every failure has the one body `Problem`; a call that cannot be read is 400, 413 or 415 also where that is not listed. ' +
  'Every POST and PUT takes an `Idempotency-Key` (1 to 255 visible ASCII characters): sent again ' +
  'within seven days it is answered as the first time, with `Idempotent-Replayed: true`; with another ' +
  'body or query it is 422 (without credentials: another call), while the first call runs 409.';

/** Must be registered before the first route. */
export async function describeApi(app: ApiServer): Promise<void> {
  await app.register(swagger, {
    openapi: {
      openapi: '3.1.0',
      info: { title: 'Sluice API', version: '1.0.0', description: DESCRIPTION },
      components: {
        securitySchemes: {
          app_key: { type: 'http', scheme: 'bearer', description: 'A key of the app API.' },
          account_token: {
            type: 'http',
            scheme: 'bearer',
            description:
              'A token of a service account (`sa_live_…`, `sa_sandbox_…`), or what it was exchanged for. A read-only one is for GET alone.',
          },
        },
      },
      security: [{ app_key: [] }],
    },
    transform: createJsonSchemaTransform({}),
    transformObject: createJsonSchemaTransformObject({}),
  });
}

/** Declares the routes that show the description. */
export function serveReference(app: ApiServer): void {
  let rendered: { readonly documentText: string; readonly page: string } | undefined;
  const render = () => {
    const document = mend(withoutUnused(app.swagger() as ApiDocument));
    const documentText = JSON.stringify({ ...document, webhooks: describeEvents() });
    return { documentText, page: renderReferencePage(document) };
  };

  app.get('/openapi.json', { schema: { hide: true } }, (_request, reply) =>
    reply
      .header('content-type', 'application/json; charset=utf-8')
      .send((rendered ??= render()).documentText),
  );
  app.get('/docs', { schema: { hide: true } }, (_request, reply) =>
    reply
      .headers({
        'content-type': 'text/html; charset=utf-8',
        'content-security-policy': CONTENT_SECURITY_POLICY,
      })
      .send((rendered ??= render()).page),
  );
}

/** What is posted to a reporting webhook, by event type (OpenAPI 3.1, `webhooks`). */
function describeEvents(): Record<string, unknown> {
  const responses = { 200: { description: 'Any 2xx within 4 seconds: taken.' } };
  return Object.fromEntries(
    [...EVENT_SCHEMAS].map(([type, schema]) => {
      const { $schema: _, ...described } = z.toJSONSchema(schema);
      const requestBody = { content: { 'application/json': { schema: described } } };
      return [type, { post: { summary: `A delivery of ${type}`, requestBody, responses } }];
    }),
  );
}

/** The converter makes each named schema twice, for requests and for responses; only what is pointed at stays. */
function withoutUnused(document: ApiDocument): ApiDocument {
  const schemas = document.components?.schemas ?? {};
  const used = new Set<string>();
  const follow = (part: unknown): void => {
    for (const [, name = ''] of JSON.stringify(part).matchAll(/"#\/components\/schemas\/(\w+)"/g)) {
      if (used.has(name)) continue;
      used.add(name);
      follow(schemas[name] ?? null);
    }
  };
  follow(document.paths);
  const kept = Object.entries(schemas).filter(([name]) => used.has(name));
  return { ...document, components: { ...document.components, schemas: Object.fromEntries(kept) } };
}

/** As the converter and the plugin leave it → as it is read. */
function mend(document: ApiDocument): ApiDocument {
  const schemas = Object.entries(document.components?.schemas ?? {}).map(([name, schema]) => [
    name,
    isOfRequests(name) ? withExamples(schema) : opened(schema),
  ]);
  const paths = Object.entries(document.paths).map(([path, methods]) => [
    path,
    Object.fromEntries(
      Object.entries(methods).map(([method, operation]) => [
        method,
        {
          ...withExamples(operation),
          ...(TAKES_KEY.includes(method) && {
            parameters: [...(operation.parameters ?? []), KEY_PARAMETER],
          }),
          responses: opened(operation.responses),
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

const TAKES_KEY: readonly string[] = ['post', 'put'];

/** Added here: in the schema of a route it would be the only header that the handler sees. */
const KEY_PARAMETER = {
  name: 'Idempotency-Key',
  in: 'header',
  required: false,
  description: 'The same call with the same key is made once.',
  schema: { type: 'string', minLength: 1, maxLength: 255, pattern: '^[!-~]+$' },
};

/** How the converter names what a request may hold. */
const isOfRequests = (name: string): boolean => name.endsWith('Input');

/**
 * Answers may gain fields, so the description does not call them complete, as the converter does: a client that checks
 * them would refuse what a later version adds. The tests hold answers to the stricter one.
 */
const opened = <Part>(part: Part): Part =>
  changedWithin(part, (object) => {
    const changed = { ...object };
    if (changed['additionalProperties'] === false) delete changed['additionalProperties'];
    if (changed['description'] === UNDESCRIBED) changed['description'] = 'Done.';
    return changed;
  });

/** What the plugin writes where an answer has no description. */
const UNDESCRIBED = 'Default Response';

/**
 * Schemas of requests have their examples as `requestExamples`: what is called `examples` the converter takes for
 * something that a schema has made, and leaves out where it makes anything.
 */
const withExamples = <Part>(part: Part): Part =>
  changedWithin(part, ({ requestExamples, ...rest }) =>
    requestExamples === undefined ? rest : { ...rest, examples: requestExamples },
  );

const changedWithin = <Part>(
  part: Part,
  change: (object: Readonly<Record<string, unknown>>) => object,
): Part =>
  JSON.parse(JSON.stringify(part), (_key, value: unknown) =>
    typeof value === 'object' && value !== null && !Array.isArray(value)
      ? change(value as Record<string, unknown>)
      : value,
  ) as Part;
