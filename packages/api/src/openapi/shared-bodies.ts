/**
 * Shares the common parts of the bodies of deliveries. They stand once, under `components`, so types that are made from
 * the description are a sixth smaller. Pure.
 */
import { z } from 'zod';
import { COMMON_PARTS } from './event-schemas.ts';
import type { ApiDocument } from './reference-page.ts';

interface Schema {
  readonly type?: string;
  readonly properties?: Readonly<Record<string, Schema>>;
  readonly required?: readonly string[];
  readonly items?: Schema;
}

interface Part {
  readonly name: string;
  readonly schema: Schema;
}

/** The document, whose bodies refer to `components.schemas`. */
export function withSharedBodies(document: ApiDocument): ApiDocument {
  const parts: Part[] = [];
  for (const [name, part] of Object.entries(COMMON_PARTS)) {
    const { $schema: _, ...schema } = z.toJSONSchema(part);
    parts.push({ name, schema: withPartsInside(open(schema as Schema), parts) });
  }
  const webhooks = JSON.parse(JSON.stringify(document.webhooks ?? {}), (key, value: unknown) =>
    key === 'schema' ? shared(open(value as Schema), parts) : value,
  ) as ApiDocument['paths'];
  const named = Object.fromEntries(parts.map(({ name, schema }) => [name, schema]));
  const schemas = { ...document.components?.schemas, ...named };
  return { ...document, webhooks, components: { ...document.components, schemas } };
}

/** Without `additionalProperties` that admit everything: it is the default. */
const open = (schema: Schema): Schema =>
  JSON.parse(JSON.stringify(schema), (key, value: unknown) =>
    key === 'additionalProperties' && JSON.stringify(value) === '{}' ? undefined : value,
  ) as Schema;

/** As the part that it contains, and the rest. */
function shared(given: Schema, parts: readonly Part[]): object {
  const schema = withPartsInside(given, parts);
  const part = parts.find((each) => contains(schema, each.schema));
  if (part === undefined) return schema;
  const reference = { $ref: `#/components/schemas/${part.name}` };
  const { properties = {}, required = [], ...others } = schema;
  const isOwn = (name: string): boolean => !(name in (part.schema.properties ?? {}));
  const own = Object.entries(properties).filter(([name]) => isOwn(name));
  if (own.length === 0) return reference;
  const ownRequired = required.filter(isOwn);
  const rest = {
    ...others,
    properties: Object.fromEntries(own),
    ...(ownRequired.length > 0 && { required: ownRequired }),
  };
  return { allOf: [reference, rest] };
}

const withPartsInside = ({ properties, items, ...others }: Schema, parts: readonly Part[]) => ({
  ...others,
  ...(properties && {
    properties: Object.fromEntries(
      Object.entries(properties).map(([name, each]) => [name, shared(each, parts)]),
    ),
  }),
  ...(items && { items: shared(items, parts) }),
});

/** True if the schema has all fields of the part, and requires the same ones of them. */
function contains({ properties = {}, required = [] }: Schema, part: Schema): boolean {
  return Object.entries(part.properties ?? {}).every(
    ([name, field]) =>
      JSON.stringify(properties[name]) === JSON.stringify(field) &&
      required.includes(name) === (part.required ?? []).includes(name),
  );
}
