/** The description of the interface as the API serves it. */
import { startApi } from '../support/api-under-test.ts';

export interface Document {
  readonly openapi: string;
  readonly info: { readonly version: string };
  readonly security: unknown;
  readonly paths: Record<string, Record<string, Record<string, unknown>>>;
  readonly webhooks: Record<string, { readonly post: { readonly requestBody: object } }>;
  readonly tags: readonly { readonly name: string }[];
  readonly components: { readonly schemas: Record<string, Record<string, unknown>> };
}

/** With each shared answer in the place of its reference. */
function resolved(shared: Document): Document {
  const { responses } = shared.components as unknown as { responses: Record<string, object> };
  return JSON.parse(JSON.stringify(shared), (_, value: { $ref?: string } | null) => {
    const [, name = ''] = /^#\/components\/responses\/(\w+)$/.exec(value?.$ref ?? '') ?? [];
    return name === '' ? value : responses[name];
  }) as Document;
}

/** An API, and the description that it serves. */
export async function serveDocument() {
  const { app } = await startApi();
  const { body: text } = await app.inject('/openapi.json');
  const document = resolved(JSON.parse(text) as Document);
  /** Without the calls of intake, which `standalone`'s tests hold to an intake. */
  const apiPaths: Document['paths'] = Object.fromEntries(
    Object.entries(document.paths).map(([path, methods]) => [
      path,
      Object.fromEntries(
        Object.entries(methods).filter(([, { servers }]) => servers === undefined),
      ),
    ]),
  );
  return { app, document, text, apiPaths };
}

export type ServedDocument = Awaited<ReturnType<typeof serveDocument>>;
