/** Renders the API's description as a document and as a page. Loaded for the first who asks (`openapi.ts`). */
import { gzipSync } from 'node:zlib';
import { z } from 'zod';
import { EVENT_SCHEMAS } from './event-schemas.ts';
import { EVENT_TYPE_NAMES } from './event-type-names.ts';
import { INTAKE_PATHS, INTAKE_SCHEMAS } from './intake/intake-paths.ts';
import { asPublished } from './published-description.ts';
import {
  CONTENT_SECURITY_POLICY,
  renderReferencePage,
  type ApiDocument,
  type ApiOperation,
} from './reference-page.ts';
import { withSharedBodies } from './shared-bodies.ts';
import { withSharedResponses } from './shared-responses.ts';
import { staticFile, type StaticFile } from '../serving/static-file.ts';

export interface RenderedReference {
  readonly document: StaticFile;
  readonly page: StaticFile;
  /** Of the page. */
  readonly contentSecurityPolicy: string;
}

/** @param swagger - the description as the schemas of the routes give it. */
export function renderReference(swagger: ApiDocument): RenderedReference {
  const document = {
    ...withIntake(asPublished(withoutUnused(swagger))),
    webhooks: describeEvents(),
  };
  const documentText = JSON.stringify(withSharedResponses(withSharedBodies(document)));
  return {
    document: compressed('application/json; charset=utf-8', documentText),
    page: compressed('text/html; charset=utf-8', renderReferencePage(document)),
    contentSecurityPolicy: CONTENT_SECURITY_POLICY,
  };
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
      const description = `Signed with the secret of a reporting webhook that lists \`${type}\`.`;
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
