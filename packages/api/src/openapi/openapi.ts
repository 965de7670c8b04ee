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
import { INTAKE_SECURITY_SCHEMES, INTAKE_TAGS } from './intake/intake-tags.ts';
import type { ApiDocument } from './reference-page.ts';
import type { RenderedReference } from './render-reference.ts';
import type { ApiServer } from '../http/api-server.ts';
import { BODY_SIZE_BYTES_MAX } from '../http/fields.ts';
import { sendStaticFile } from '../serving/static-file.ts';

const DESCRIPTION =
  'Events are sent to intake, by the Pipelines API or the Track API. ' +
  'People, activities and reporting webhooks of one workspace: the one whose key you send. ' +
  'The account, its users and its credentials with a token of a service account. ' +
  'Fields of a body that are not described are ignored, or refused where the body says so; parameters that are not ' +
  'described are ignored, and refused by the audit log and `GET /v1/deliveries`. Answers may gain fields. ' +
  '`x-sluice-role` is the lowest role of a user in the console, or of a token, for the operation; a key of a workspace has no role. ' +
  `A body of the API has at most ${BODY_SIZE_BYTES_MAX / 1_024} KB, a file apart, and its texts must not hold U+0000 or half of a surrogate pair. ` +
  'Every failure has the one body `Problem`; a call that cannot be read is 400, 413 or 415 also where that is not listed. ' +
  'Every POST and PUT takes an `Idempotency-Key` (1 to 255 visible ASCII characters): sent again ' +
  'within seven days it is answered as the first time, with `Idempotent-Replayed: true`; with another ' +
  'body or query it is 422 (without credentials: another call), while the first call runs 409.';

/** Of an operation: the lowest role of a user or a token that may call it. */
const ROLE = 'x-sluice-role';

/** Of an operation: its body as `multipart/form-data`, beside the one of JSON. */
const FORM = 'x-sluice-form';

/** In the order in which readers meet them. */
const TAGS = [
  ...INTAKE_TAGS,
  {
    name: 'reporting webhooks',
    description: 'Webhooks, their queues, deliveries, secrets and replays.',
  },
  { name: 'event types', description: 'Types of the published messages, with their schemas.' },
  { name: 'feeds', description: 'Subscriptions that a consumer reads by a cursor.' },
  { name: 'applications', description: 'Customers of the workspace, and their endpoints.' },
  {
    name: 'portal',
    description: 'Links that open only a set of webhooks to the engineers of a customer.',
  },
  { name: 'customers', description: 'People and their activities.' },
  { name: 'objects', description: 'Objects, and the people related to them.' },
  { name: 'events', description: 'Events, their traces and statistics, and the live tail.' },
  { name: 'ingestion issues', description: 'Input that was refused, skipped or corrected.' },
  { name: 'imports', description: 'Files of events.' },
  {
    name: 'workspaces',
    description: 'The workspace of a key, and the addresses of this installation.',
  },
  { name: 'accounts', description: 'Accounts, their workspaces, users and receipts.' },
  { name: 'credentials', description: 'Keys of workspaces and tokens of accounts.' },
  { name: 'tokens', description: 'Tokens for a short time.' },
  { name: 'billing', description: 'Plans, credits, purchases and usage.' },
  { name: 'fleet', description: 'The state of the installation, for its operator.' },
  { name: 'audit logs', description: 'Changes with their actors, and exports of them.' },
  { name: 'signup', description: 'New accounts and the startup program.' },
  { name: 'deliveries', description: 'The requests that a reporting webhook receives.' },
];

/** The plugin describes no field of a route that begins with `x-`, so the role and the form of each operation are added here. */
function transforms() {
  const transform = createJsonSchemaTransform({});
  const transformObject = createJsonSchemaTransformObject({});
  const roles = new Map<string, unknown>();
  return {
    transform: (given: Parameters<typeof transform>[0]) => {
      const path = given.url.replaceAll(/:(\w+)/g, '{$1}');
      for (const method of [given.route.method].flat())
        roles.set(`${method} ${path}`, given.schema[ROLE]);
      const described = transform(given);
      const form = given.schema[FORM];
      if (form === undefined) return described;
      const { body } = transform({ ...given, schema: { body: form } }).schema;
      const content = {
        'application/json': { schema: described.schema.body },
        'multipart/form-data': { schema: body },
      };
      return { ...described, schema: { ...described.schema, body: { content } } };
    },
    transformObject: (given: Parameters<typeof transformObject>[0]) => {
      const document = transformObject(given);
      for (const [path, methods] of Object.entries(document.paths ?? {}))
        for (const [method, operation] of Object.entries(methods ?? {})) {
          const role = roles.get(`${method.toUpperCase()} ${path}`);
          if (role !== undefined) Object.assign(operation as object, { [ROLE]: role });
        }
      return document;
    },
  };
}

/** Must be registered before the first route. */
export async function describeApi(app: ApiServer): Promise<void> {
  await app.register(swagger, {
    openapi: {
      openapi: '3.1.0',
      info: {
        title: 'Sluice',
        version: '1.0.0',
        description: DESCRIPTION,
        contact: { name: 'The operator of this installation' },
        license: { name: 'Apache 2.0', identifier: 'Apache-2.0' },
      },
      servers: [{ url: '/', description: 'This installation' }],
      tags: TAGS,
      components: {
        securitySchemes: {
          ...INTAKE_SECURITY_SCHEMES,
          app_key: { type: 'http', scheme: 'bearer', description: 'A key of the app API.' },
          account_token: {
            type: 'http',
            scheme: 'bearer',
            description:
              'A token of a service account (`sa_live_…`, `sa_sandbox_…`), or an access token from its exchange. A read-only one is for GET alone.',
          },
        },
      },
      security: [{ app_key: [] }],
    },
    ...transforms(),
  });
}

/** Declares the routes that show the description. */
export function serveReference(app: ApiServer): void {
  let rendered: Promise<RenderedReference> | undefined;
  // With the modules that only the description needs: a start is shorter without them.
  const render = async () => {
    const { renderReference } = await import('./render-reference.ts');
    return renderReference(app.swagger() as ApiDocument);
  };

  // It changes with the version: a client that keeps it asks each time whether it is the same.
  app.get('/openapi.json', { schema: { hide: true } }, async (request, reply) => {
    void reply.header('cache-control', 'no-cache');
    return sendStaticFile(request, reply, (await (rendered ??= render())).document);
  });
  // `/docs/TAG/OPERATION` are screens of the console, for signed-in users; this is for everybody, and needs no script.
  for (const path of ['/docs', '/docs/plain'])
    app.get(path, { schema: { hide: true } }, async (request, reply) => {
      const { page, contentSecurityPolicy } = await (rendered ??= render());
      void reply.headers({
        'cache-control': 'no-cache',
        'content-security-policy': contentSecurityPolicy,
      });
      return sendStaticFile(request, reply, page);
    });
}
