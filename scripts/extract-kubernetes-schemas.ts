/**
 * Extracts the schemas that `check-manifests.ts` needs.
 * They come from the published descriptions of Kubernetes, the Gateway API and KEDA: the kinds that `infra/kubernetes`
 * uses, without prose. To be run for another version of one of them:
 *
 *   node scripts/extract-kubernetes-schemas.ts SWAGGER.json CRD.yaml…
 *
 * The first file is `api/openapi-spec/swagger.json` of `k8s.io/kubernetes`; the others are definitions of custom
 * resources, as `sigs.k8s.io/gateway-api` (`config/crd/standard`) and `github.com/kedacore/keda/v2`
 * (`config/crd/bases`) publish them. `go mod download -json MODULE@VERSION` prints the folder of a module. Every object
 * takes only the described fields, as `kubectl apply --validate=strict` does.
 */
import { readFileSync, writeFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { parse } from 'yaml';
import { KINDS, SCHEMAS_FILE, type KubernetesSchemas, type Schema } from './kubernetes-schemas.ts';

interface CustomResource {
  readonly spec: {
    readonly group: string;
    readonly names: { readonly kind: string };
    readonly versions: readonly {
      readonly name: string;
      readonly schema: { readonly openAPIV3Schema: Schema };
    }[];
  };
}

const META = '#/definitions/io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta';
const BOUNDS = [
  'minimum',
  'maximum',
  'minLength',
  'maxLength',
  'minItems',
  'maxItems',
  'minProperties',
  'maxProperties',
] as const;

const [swaggerFile = '', ...customFiles] = process.argv.slice(2);
const swagger = JSON.parse(readFileSync(swaggerFile, 'utf8')) as {
  readonly info: { readonly version: string };
  readonly definitions: Readonly<Record<string, Schema>>;
};
const customKinds = new Map(customFiles.flatMap((file) => customKindsOf(file)));
const definitions: Record<string, Schema> = {};
const kinds = Object.fromEntries(KINDS.map((kind) => [kind, schemaOf(kind)] as const));
const schemas: KubernetesSchemas = { kinds, definitions };
writeFileSync(fileURLToPath(SCHEMAS_FILE), `${JSON.stringify(schemas)}\n`);
console.log(`${KINDS.length} kinds, ${Object.keys(definitions).length} definitions`);

/** @throws Error if no file describes the kind. */
function schemaOf(kind: string): Schema {
  const custom = customKinds.get(kind);
  // Metadata are described by Kubernetes alone.
  if (custom)
    return strict({
      ...custom,
      properties: { ...custom.properties, metadata: { $ref: META }, status: undefined },
    });
  const [name] =
    Object.entries(swagger.definitions).find(([, schema]) =>
      schema['x-kubernetes-group-version-kind']?.some(
        (each) =>
          `${each.group === '' ? '' : `${each.group}/`}${each.version} ${each.kind}` === kind,
      ),
    ) ?? [];
  if (name === undefined) throw new Error(`no file describes ${kind}`);
  return refer(name);
}

function refer(name: string): Schema {
  if (!(name in definitions)) {
    // Before its fields, which may lead back to it.
    definitions[name] = {};
    definitions[name] = strict(swagger.definitions[name] ?? {});
  }
  return { $ref: `#/definitions/${name}` };
}

/** Without prose, defaults, and fields that a server fills in. */
function strict(schema: Schema): Schema {
  if (schema.$ref !== undefined) return refer(schema.$ref.replace('#/definitions/', ''));
  if (schema.format === 'int-or-string' || schema['x-kubernetes-int-or-string'] === true)
    return { type: ['integer', 'string'] };
  const { type, required, properties, items, additionalProperties } = schema;
  const fields = Object.entries(properties ?? {}).filter(
    ([name, field]) => field !== undefined && name !== 'status' && name !== 'managedFields',
  );
  const isOpen = schema['x-kubernetes-preserve-unknown-fields'] === true;
  return {
    ...(type !== undefined && { type }),
    ...(schema.enum && { enum: schema.enum }),
    ...(schema.pattern !== undefined && { pattern: schema.pattern }),
    ...Object.fromEntries(BOUNDS.flatMap((name) => (name in schema ? [[name, schema[name]]] : []))),
    ...(required && { required }),
    ...(items && { items: strict(items) }),
    ...(fields.length > 0 && {
      properties: Object.fromEntries(
        fields.map(([name, field]) => [name, strict(field as Schema)] as const),
      ),
      ...(!isOpen && { additionalProperties: false }),
    }),
    ...(typeof additionalProperties === 'object' && {
      additionalProperties: strict(additionalProperties),
    }),
  };
}

function customKindsOf(file: string): (readonly [string, Schema])[] {
  const { spec } = parse(readFileSync(file, 'utf8')) as CustomResource;
  return spec.versions.map(({ name, schema }) => [
    `${spec.group}/${name} ${spec.names.kind}`,
    schema.openAPIV3Schema,
  ]);
}
