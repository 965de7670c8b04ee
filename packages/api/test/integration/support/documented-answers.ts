/**
 * Holds answers to the OpenAPI document that the API itself serves. Its schemas are checked again, by a validator of
 * JSON Schema that is independent of ours.
 */
import { Ajv2020 } from 'ajv/dist/2020.js';
import addFormats from 'ajv-formats';
import { EVENT_TYPE_NAMES } from '../../../src/openapi/event-type-names.ts';

interface Answer {
  readonly statusCode: number;
  readonly headers: { readonly 'content-type'?: string | undefined };
  readonly body: string;
}

interface Documented {
  readonly content?: Record<string, { readonly schema?: unknown }>;
}

interface Document {
  readonly paths: Record<
    string,
    Record<string, { readonly responses: Record<string, Documented> }>
  >;
  readonly components?: { readonly schemas?: object };
}

/**
 * Statuses of requests that cannot be read, for every operation, as in the document's own text; and
 * `access-matrix.test.ts`'s answer.
 */
const OF_ANY_CALL: ReadonlySet<number> = new Set([400, 413, 415, 418]);

/**
 * @returns checks one answer.
 * @throws Error (the check) if its body does not fit the document's schema of that operation and status. An answer of
 *   no operation is not in the document.
 */
export function checkAgainst(document: object) {
  const { paths, components } = document as Document;
  const ajv = new Ajv2020({ strict: false, allErrors: false });
  addFormats.default(ajv);
  // The API adds the names of event types when it serves the document.
  const schemas = { ...components?.schemas, ...EVENT_TYPE_NAMES };
  ajv.addSchema({ ...document, components: { ...components, schemas } }, 'openapi');
  const templates = Object.keys(paths)
    // Literal segments go before parameters.
    .toSorted((one, other) => (one.match(/\{/g)?.length ?? 0) - (other.match(/\{/g)?.length ?? 0))
    .map((path) => ({
      path,
      pattern: new RegExp(
        `^${path.replaceAll(/[.+?^$()|[\]\\]/g, '\\$&').replaceAll(/\{\w+\}/g, '[^/]+')}$`,
      ),
    }));

  return (method: string, url: string, answer: Answer): void => {
    const [pathname = ''] = url.split('?');
    const path = templates.find(({ pattern }) => pattern.test(pathname))?.path;
    const operation = path === undefined ? undefined : paths[path]?.[method.toLowerCase()];
    if (path === undefined || !operation) return;
    const status = String(answer.statusCode);
    const documented = operation.responses[status];
    const shown = `${method} ${path} ${status}: ${answer.body.slice(0, 500)}`;
    if (!documented && OF_ANY_CALL.has(answer.statusCode)) return;
    if (!documented) throw new Error(`not documented: ${shown}`);
    const [type = ''] = (answer.headers['content-type'] ?? '').split(';');
    if (answer.body === '') return;
    const content = documented.content?.[type];
    if (!content) throw new Error(`not documented as ${type}: ${shown}`);
    if (!type.endsWith('json')) return;
    const pointer = [
      'paths',
      path,
      method.toLowerCase(),
      'responses',
      status,
      'content',
      type,
      'schema',
    ]
      .map((key) => encodeURIComponent(key.replaceAll('~', '~0').replaceAll('/', '~1')))
      .join('/');
    const reference = `openapi#/${pointer}`;
    const validate = ajv.getSchema(reference) ?? ajv.compile({ $ref: reference });
    if (!validate(JSON.parse(answer.body)))
      throw new Error(`${ajv.errorsText(validate.errors)}: ${shown}`);
  };
}
