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
import { gzipSync } from 'node:zlib';
import { z } from 'zod';
import { EVENT_SCHEMAS } from './event-schemas.ts';
import { EVENT_TYPE_NAMES } from './event-type-names.ts';
import {
  INTAKE_PATHS,
  INTAKE_SCHEMAS,
  INTAKE_SECURITY_SCHEMES,
  INTAKE_TAGS,
} from './intake/intake-paths.ts';
import { asPublished } from './published-description.ts';
import {
  CONTENT_SECURITY_POLICY,
  renderReferencePage,
  type ApiDocument,
  type ApiOperation,
} from './reference-page.ts';
import { withSharedResponses } from './shared-responses.ts';
import type { ApiServer } from '../http/api-server.ts';
import { BODY_SIZE_BYTES_MAX } from '../http/fields.ts';
import { sendStaticFile, staticFile, type StaticFile } from '../serving/static-file.ts';

const DESCRIPTION =
  'Events are sent to intake, by the Pipelines API or the Track API. ' +
  'People, activities and reporting webhooks of one workspace: the one whose key you send. ' +
  'The account, its users and its credentials with a token of a service account. ' +
  'Fields of a body that are not described are ignored, or refused where the body says so; parameters that are not ' +
  'described are ignored, and refused by the audit log and `GET /v1/deliveries`. Answers may gain fields. ' +
  `A body of the API has at most ${BODY_SIZE_BYTES_MAX / 1_024} KB, a file apart, and its texts must not hold U+0000 or half of a surrogate pair. ` +
  'Every failure has the one body `Problem`; a call that cannot be read is 400, 413 or 415 also where that is not listed. ' +
  'Every POST and PUT takes an `Idempotency-Key` (1 to 255 visible ASCII characters): sent again ' +
  'within seven days it is answered as the first time, with `Idempotent-Replayed: true`; with another ' +
  'body or query it is 422 (without credentials: another call), while the first call runs 409.';

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
    transform: createJsonSchemaTransform({}),
    transformObject: createJsonSchemaTransformObject({}),
  });
}

/** Declares the routes that show the description. */
export function serveReference(app: ApiServer): void {
  let rendered: { readonly document: StaticFile; readonly page: StaticFile } | undefined;
  const render = () => {
    const described = asPublished(withoutUnused(app.swagger() as ApiDocument));
    const document = { ...withIntake(described), webhooks: describeEvents() };
    const documentText = JSON.stringify(withSharedResponses(document));
    return {
      document: compressed('application/json; charset=utf-8', documentText),
      page: compressed('text/html; charset=utf-8', renderReferencePage(document)),
    };
  };

  // It changes with the version: a client that keeps it asks each time whether it is the same.
  app.get('/openapi.json', { schema: { hide: true } }, (request, reply) => {
    void reply.header('cache-control', 'no-cache');
    return sendStaticFile(request, reply, (rendered ??= render()).document);
  });
  // `/docs/TAG/OPERATION` are screens of the console, for signed-in users; this is for everybody, and needs no script.
  for (const path of ['/docs', '/docs/plain'])
    app.get(path, { schema: { hide: true } }, (request, reply) => {
      void reply.headers({
        'cache-control': 'no-cache',
        'content-security-policy': CONTENT_SECURITY_POLICY,
      });
      return sendStaticFile(request, reply, (rendered ??= render()).page);
    });
}

/** A tenth of the bytes. */
function compressed(contentType: string, content: string): StaticFile {
  const identity = Buffer.from(content);
  return staticFile(contentType, identity, { gzip: gzipSync(identity) });
}

/** The calls of intake before the API's: readers begin with them. */
function withIntake(document: ApiDocument): ApiDocument {
  const paths: Record<string, Record<string, ApiOperation>> = { ...INTAKE_PATHS };
  for (const [path, methods] of Object.entries(document.paths))
    paths[path] = { ...methods, ...paths[path] };
  const { components } = document;
  const schemas = { ...INTAKE_SCHEMAS, ...components?.schemas, ...EVENT_TYPE_NAMES };
  return { ...document, paths, components: { ...components, schemas } };
}

/** Bodies of posts to a reporting webhook, by event type (OpenAPI 3.1, `webhooks`). */
function describeEvents(): ApiDocument['paths'] {
  const responses = {
    200: { description: 'Any 2xx within 4 seconds: taken.' },
    '4XX': {
      description:
        'After any other answer, or no answer in time, it is sent again after an hour, then ever later.',
    },
  };
  return Object.fromEntries(
    [...EVENT_SCHEMAS].map(([type, schema]) => {
      const { $schema: _, ...described } = z.toJSONSchema(schema);
      const requestBody = {
        required: true,
        content: { 'application/json': { schema: described } },
      };
      const summary = `A delivery of ${type}`;
      const description = `Posted to the endpoint of a reporting webhook that lists \`${type}\`, signed with the secret of the webhook.`;
      const operationId = `receive${type.replaceAll(/(?:^|_)(\w)/g, (_match, first: string) => first.toUpperCase())}`;
      const post = {
        operationId,
        tags: ['deliveries'],
        summary,
        description,
        requestBody,
        responses,
      };
      return [type, { post: { ...post, security: [] } }];
    }),
  ) as ApiDocument['paths'];
}

/** The converter makes each named schema twice, for requests and for responses; only schemas with a reference stay. */
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
