/**
 * Faults in manifests of Kubernetes: unknown fields, values of another type, a kind or a version without a schema,
 * names that are taken twice. In a kustomization: files that are not there, and files that it does not name.
 */
import { basename, dirname, join } from 'node:path';
import { Ajv2020 } from 'ajv/dist/2020.js';
import { isMap, parseAllDocuments } from 'yaml';
import type { KubernetesSchemas } from './kubernetes-schemas.ts';

export interface ManifestFile {
  /** Below the folder of the manifests. */
  readonly path: string;
  readonly text: string;
}

interface Manifest {
  readonly apiVersion?: unknown;
  readonly kind?: unknown;
  readonly metadata?: { readonly name?: unknown };
}

const KUSTOMIZATION = 'kustomization.yaml';
/** Fields of a kustomization that ours use; kubectl refuses unknown fields. */
const KUSTOMIZATION_FIELDS: ReadonlySet<string> = new Set([
  'apiVersion',
  'kind',
  'namespace',
  'labels',
  'resources',
  'images',
]);

/** Finds the schema of `apps/v1 Deployment`. Each is compiled when it is first needed: all of them take seconds. */
function validatorsOf({ kinds, definitions }: KubernetesSchemas) {
  const names = Object.keys(kinds);
  const ajv = new Ajv2020({
    strict: false,
    allErrors: true,
    validateFormats: false,
    // Shared by all kinds, not compiled into each.
    inlineRefs: false,
  });
  const own = Object.fromEntries(Object.values(kinds).map((schema, index) => [index, schema]));
  ajv.addSchema({ definitions: { ...definitions, ...own } }, 'kubernetes');
  return (kind: string) =>
    names.includes(kind)
      ? ajv.getSchema(`kubernetes#/definitions/${names.indexOf(kind)}`)
      : undefined;
}

/** @returns a judge of manifests: a line for each problem, with file and place. */
export function createManifestJudge(
  schemas: KubernetesSchemas,
): (files: readonly ManifestFile[]) => string[] {
  const findValidator = validatorsOf(schemas);
  return (files) => manifestProblems(files, findValidator);
}

function manifestProblems(
  files: readonly ManifestFile[],
  findValidator: ReturnType<typeof validatorsOf>,
): string[] {
  const seen = new Set<string>();
  const judge = (file: ManifestFile): string[] =>
    parseAllDocuments(file.text).flatMap((document) => {
      const syntax = [...document.errors, ...document.warnings];
      if (syntax.length > 0) return syntax.map(({ message }) => `${file.path}: ${message}`);
      if (!isMap(document.contents)) return [`${file.path}: a document is no manifest`];
      const manifest = document.toJS() as Manifest;
      const kind = `${String(manifest.apiVersion)} ${String(manifest.kind)}`;
      const name = String(manifest.metadata?.name);
      const place = `${file.path}: ${kind} ${name}`;
      const validate = findValidator(kind);
      if (!validate) return [`${place}: no schema describes this kind`];
      const isTaken = seen.has(`${kind} ${name}`);
      seen.add(`${kind} ${name}`);
      void validate(manifest);
      return [
        ...(isTaken ? [`${place}: the name is taken`] : []),
        ...(manifest.metadata?.name === undefined ? [`${place}: metadata.name is missing`] : []),
        ...(validate.errors ?? []).map(
          ({ instancePath, message, params }) =>
            `${place}: ${instancePath} ${message}${detailOf(params)}`,
        ),
      ];
    });
  const manifests = files.filter(({ path }) => basename(path) !== KUSTOMIZATION);
  return [...manifests.flatMap(judge), ...kustomizationProblems(files)];
}

/** The name of the field, or the values that there are. */
function detailOf(params: Record<string, unknown>): string {
  const { additionalProperty, allowedValues } = params;
  if (typeof additionalProperty === 'string') return `: ${additionalProperty}`;
  return Array.isArray(allowedValues) ? `: ${allowedValues.join(', ')}` : '';
}

function kustomizationProblems(files: readonly ManifestFile[]): string[] {
  const paths = new Set(files.map(({ path }) => path));
  const kustomizations = files.filter(({ path }) => basename(path) === KUSTOMIZATION);
  const named = new Set<string>();
  const problems = kustomizations.flatMap(({ path, text }) => {
    const [document] = parseAllDocuments(text);
    const content = (document?.toJS() ?? {}) as Record<string, unknown>;
    const resources = Array.isArray(content['resources']) ? content['resources'].map(String) : [];
    for (const each of resources) named.add(join(dirname(path), each));
    return [
      ...Object.keys(content)
        .filter((field) => !KUSTOMIZATION_FIELDS.has(field))
        .map((field) => `${path}: ${field} is no field that kustomizations here have`),
      ...resources
        .filter((each) => !paths.has(join(dirname(path), each)))
        .map((each) => `${path}: there is no ${each}`),
    ];
  });
  const unnamed = files.filter(({ path }) => basename(path) !== KUSTOMIZATION && !named.has(path));
  return [...problems, ...unnamed.map(({ path }) => `${path}: no kustomization names it`)];
}
