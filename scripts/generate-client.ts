/**
 * `npm run docs` runs it: writes the types of `@sluice/client` from the description of both services. `--check` only
 * compares, and fails if they were made from another description, or are too large.
 *
 * openapi-typescript needs a TypeScript older than ours, so it is fetched when types are written and is no dependency.
 * A check needs only the first line of the types: the digest of their description, and the size of all its types.
 */
import { spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { describeServices } from './described-api.ts';

/** Of the client's types, and of the types of the whole description, which a user may make. */
const SIZE_BYTES_MAX = 250_000;
const WHOLE_SIZE_BYTES_MAX = 600_000;

const TYPES = fileURLToPath(new URL('../packages/client/schema.d.ts', import.meta.url));
const GENERATOR = ['openapi-typescript@7.13.0', 'typescript@5.9.3'] as const;

interface Parameter {
  readonly name?: string;
  readonly description?: string;
}

type Content = Readonly<Record<string, { readonly example?: unknown }>>;

interface Operation {
  readonly summary?: string;
  readonly description?: string;
  readonly requestBody?: { readonly content: Content };
  readonly responses: Readonly<Record<string, unknown>>;
  readonly parameters?: readonly Parameter[];
  readonly servers?: unknown;
}

interface Description {
  readonly paths: Readonly<Record<string, Readonly<Record<string, Operation>>>>;
  readonly components: Readonly<Record<string, unknown>>;
}

const FAILURE_NAME = 'Failure';
const FAILURE = {
  description: 'Failed.',
  content: { 'application/json': { schema: { $ref: '#/components/schemas/Problem' } } },
};

/** Of a batch of which some items are wrong; the other 207 has results. */
const isFailure = (response: unknown): boolean =>
  JSON.stringify(response).includes('/schemas/IntakeProblem"');

/** Each call of intake has this header, and the clients' own option explains it. */
function brief(parameter: Parameter): Parameter {
  const { description: _, ...others } = parameter;
  return parameter.name === 'X-Strict-Mode' ? others : parameter;
}

/** The reference shows examples; in types they are comments, of a twentieth of the size. */
const withoutExamples = (content: Content): object =>
  Object.fromEntries(
    Object.entries(content).map(([type, { example: _, ...others }]) => [type, others]),
  );

/** Examples of schemas. A field may be called `examples` too, and is no list. */
const withoutSchemaExamples = <Part>(part: Part): Part =>
  JSON.parse(
    JSON.stringify(part, (key, value: unknown) =>
      key === 'examples' && Array.isArray(value) ? undefined : value,
    ),
  ) as Part;

/** Without a description that only repeats the summary. */
function described({
  summary,
  description,
  requestBody,
  ...others
}: Omit<Operation, 'responses' | 'parameters'>) {
  return {
    ...others,
    summary,
    ...(description !== `${summary}.` && { description }),
    ...(requestBody && {
      requestBody: { ...requestBody, content: withoutExamples(requestBody.content) },
    }),
  };
}

/** One type for every failure, no examples, no webhooks, and no `Idempotency-Key`, which the client makes. */
function reduced(description: Description): object {
  const paths = Object.entries(description.paths).map(([path, methods]) => [
    path,
    Object.fromEntries(
      Object.entries(methods).map(([method, { parameters = [], responses, ...operation }]) => [
        method,
        {
          ...described(operation),
          parameters: parameters.filter(({ name }) => name !== 'Idempotency-Key').map(brief),
          responses: {
            ...Object.fromEntries(
              Object.entries(responses)
                .filter(([status]) => status.startsWith('2'))
                .map(([status, response]) => [
                  status,
                  status === '207' && isFailure(response) ? FAILURE : response,
                ]),
            ),
            default: { $ref: `#/components/responses/${FAILURE_NAME}` },
          },
        },
      ]),
    ),
  ]);
  const kept = Object.fromEntries(paths) as Description['paths'];
  const text = JSON.stringify(kept);
  const responses = Object.entries(description.components['responses'] ?? {}).filter(([name]) =>
    text.includes(`/responses/${name}"`),
  );
  const shared = { ...Object.fromEntries(responses), [FAILURE_NAME]: FAILURE };
  // Of intake's failures, which have the one type now.
  const { IntakeProblem: _, ...schemas } = description.components['schemas'] as object & {
    readonly IntakeProblem: unknown;
  };
  const components = { ...description.components, schemas, responses: shared };
  return withoutSchemaExamples({ ...description, webhooks: {}, paths: kept, components });
}

/** The paths of one service; `/v1/stream` is of both. */
const pathsOf = ({ paths }: Description, isOfIntake: boolean): string =>
  Object.entries(paths)
    .filter(([, methods]) =>
      Object.values(methods).some(({ servers }) => (servers !== undefined) === isOfIntake),
    )
    .map(([path]) => `  | '${path}'`)
    .join('\n');

/**
 * One space a level, without members for absent parts, without headers of answers, which are not described, and without
 * comments that repeat the type (`@enum`, `@constant`): two thirds of the size.
 */
const withoutNothing = (types: string): string =>
  types
    .replaceAll(/^( +)/gm, (spaces) => ' '.repeat(spaces.length / 4))
    .replaceAll(/^ *\w+\?: never;\n/gm, '')
    .replaceAll(/^ *headers: \{\n *\[name: string\]: unknown;\n *\};\n/gm, '')
    .replaceAll(/^ *parameters: \{\n *\};\n/gm, '')
    .replaceAll(/^ *(?:\/\*\* )?(?:\* )?@(?:enum|constant)\b.*\n/gm, '')
    // Comments that have one line left.
    .replaceAll(/\/\*\*\n *\* (.*)\n *\*\//g, '/** $1 */');

/** openapi-typescript takes each body of bytes for a text. */
const withFiles = (types: string): string =>
  types.replaceAll(/(\* Format: binary\n(?: *\*.*\n)* *\w+\??: )string;/g, '$1Blob;');

function generate(description: Description, digest: string): string {
  const whole = typesOf(description);
  return `${headOf(digest, Buffer.byteLength(whole))}
${withFiles(withoutNothing(typesOf(reduced(description))))}
/** Served by intake. */
export type IntakePath =
${pathsOf(description, true)};

/** Served by the API. */
export type ApiPath =
${pathsOf(description, false)};
`;
}

const headOf = (digest: string, wholeSizeBytes: number): string =>
  `// Made by \`npm run docs\` from the description with the SHA-256 ${digest}, whose types have ${wholeSizeBytes} bytes with webhooks.`;

/** @throws Error if openapi-typescript cannot be fetched, or refuses the description. */
function typesOf(description: object): string {
  const folder = mkdtempSync(join(tmpdir(), 'sluice-client-'));
  try {
    const [from, to] = [join(folder, 'openapi.json'), join(folder, 'schema.d.ts')];
    writeFileSync(from, JSON.stringify(description));
    const packages = GENERATOR.flatMap((name) => ['--package', name]);
    const { status, stderr, error } = spawnSync(
      'npx',
      ['--yes', ...packages, 'openapi-typescript', from, '-o', to],
      { encoding: 'utf8', cwd: folder },
    );
    if (status !== 0)
      throw new Error(`openapi-typescript made no types: ${error?.message ?? stderr}`);
    return readFileSync(to, 'utf8');
  } finally {
    rmSync(folder, { recursive: true });
  }
}

/** @returns the faults of the types. */
function problemsOf(types: string, digest: string): string[] {
  const [, madeOf, wholeSize] = /SHA-256 (\w+), whose types have (\d+) bytes/.exec(types) ?? [];
  if (madeOf !== digest)
    return ['the types of @sluice/client are of another description; run "npm run docs"'];
  const sizes = [
    ['the types of @sluice/client', Buffer.byteLength(types), SIZE_BYTES_MAX],
    ['the types of the whole description', Number(wholeSize), WHOLE_SIZE_BYTES_MAX],
  ] as const;
  return sizes
    .filter(([, size, max]) => size > max)
    .map(([name, size, max]) => `${name} have ${size} bytes, and may have ${max}; share schemas`);
}

const text = await describeServices();
const digest = createHash('sha256').update(text).digest('hex');
if (!process.argv.includes('--check'))
  writeFileSync(TYPES, generate(JSON.parse(text) as Description, digest));
for (const problem of problemsOf(readFileSync(TYPES, 'utf8'), digest)) {
  console.error(problem);
  process.exitCode = 1;
}
