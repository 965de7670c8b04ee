/**
 * `docs/reference/metrics.md`: every metric of every process. The page reads our own metrics from the calls that register them,
 * in the syntax trees of the sources, and the metrics of Node from a registry that it starts.
 *
 * A name or a meaning that is no literal fails the page, so no metric can be missing here.
 */
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { createMetrics } from '@sluice/platform/telemetry/metrics';
import { parseSync, visitorKeys } from 'oxc-parser';
import { collectDefaultMetrics, Registry } from 'prom-client';
import { code, page, table } from './markdown.ts';

interface Metric {
  readonly name: string;
  readonly kind: string;
  readonly label: string;
  readonly meaning: string;
}

/** A metric as prom-client keeps it; its types leave out the names of the labels. */
interface RegisteredMetric {
  readonly name: string;
  readonly type: string;
  readonly help: string;
  readonly labelNames?: readonly string[];
}

interface Node {
  readonly type: string;
  readonly [key: string]: unknown;
}

const PACKAGES = fileURLToPath(new URL('../../packages/', import.meta.url));

/** Method of `Metrics` → the kind of the metric, and the places of its label, name and meaning among the arguments. */
const METHODS: Readonly<
  Record<string, { readonly kind: string; readonly places: readonly number[] }>
> = {
  counter: { kind: 'counter', places: [-1, 0, 1] },
  counterBy: { kind: 'counter', places: [0, 1, 2] },
  gauge: { kind: 'gauge', places: [-1, 0, 1] },
};

/** Folder of `packages` that registers metrics → the heading of its table. */
const OWNERS: readonly (readonly [string, string])[] = [
  ['intake', 'Intake'],
  ['worker', 'Worker'],
  ['api', 'API'],
  ['platform', 'Every process'],
];

/** The page is the same on each platform that writes or compares it. */
const OF_LINUX = new Set([
  'process_virtual_memory_bytes',
  'process_heap_bytes',
  'process_open_fds',
  'process_max_fds',
]);

const INTRODUCTION = `Each process serves its metrics as text for Prometheus at \`/metrics\`, on its admin port if one is set
(\`INTAKE_ADMIN_PORT\`, \`WORKER_ADMIN_PORT\`, \`API_ADMIN_PORT\`). Every metric has the label \`service\`: \`intake\`, \`worker\` or \`api\`. A
gauge that cannot be read is left out, so it is never 0 by mistake.
[Monitoring](../operations/monitoring.md) has the alerts that are built on them.`;

const OF_WORKERS = `Each worker reads the gauges about waiting work from the stores, so every worker reports the same value: take the
maximum, and do not sum them.`;

function* nodesOf(value: unknown): Generator<Node> {
  if (Array.isArray(value)) for (const each of value) yield* nodesOf(each);
  if (typeof value !== 'object' || value === null || !('type' in value)) return;
  const node = value as Node;
  yield node;
  for (const key of visitorKeys[node.type] ?? []) yield* nodesOf(node[key]);
}

/** The literal of a syntax node; undefined for every other expression. */
const textOf = (node: unknown): string | undefined => {
  const { value } = (node ?? {}) as { readonly value?: unknown };
  return typeof value === 'string' ? value : undefined;
};

/** A metric that a file makes itself, with `new Gauge({ name: '…' })`. */
function madeMetric(node: Node): Metric | undefined {
  const { name: kind = '' } = (node['callee'] ?? {}) as { readonly name?: string };
  if (node.type !== 'NewExpression' || !['Gauge', 'Counter', 'Histogram'].includes(kind)) return;
  const [options] = node['arguments'] as readonly { readonly properties?: readonly Node[] }[];
  const valueOf = (key: string): unknown =>
    options?.properties?.find((each) => (each['key'] as { name?: string })?.name === key)?.[
      'value'
    ];
  const [name, meaning] = [textOf(valueOf('name')), textOf(valueOf('help'))];
  // In `metrics.ts` itself the callers give the names.
  if (name === undefined || meaning === undefined) return undefined;
  const { elements = [] } = (valueOf('labelNames') ?? {}) as { readonly elements?: unknown[] };
  return { name, kind: kind.toLowerCase(), label: elements.map(textOf).join(', '), meaning };
}

/** A metric that a file registers with `metrics.gauge('…', '…', …)`. */
function registeredMetric(node: Node, file: string): Metric | undefined {
  const callee = (node['callee'] ?? {}) as {
    readonly object?: { readonly name?: string };
    readonly property?: { readonly name?: string };
  };
  const method = METHODS[callee.property?.name ?? ''];
  if (node.type !== 'CallExpression' || callee.object?.name !== 'metrics' || !method) return;
  const words = node['arguments'] as readonly unknown[];
  const [label, name, meaning] = method.places.map((place) =>
    place < 0 ? '' : textOf(words[place]),
  );
  if (label === undefined || name === undefined || meaning === undefined)
    throw new Error(`${file}: the name, label or meaning of a metric is not a literal`);
  return { name, kind: method.kind, label, meaning };
}

function metricsOf(file: string): Metric[] {
  const text = readFileSync(file, 'utf8');
  if (!text.includes('metrics')) return [];
  return [...nodesOf(parseSync(file, text).program)].flatMap(
    (node) => registeredMetric(node, file) ?? madeMetric(node) ?? [],
  );
}

function metricsBelow(folder: string): Metric[] {
  return readdirSync(join(PACKAGES, folder, 'src'), { recursive: true, encoding: 'utf8' })
    .filter((name) => name.endsWith('.ts'))
    .toSorted()
    .flatMap((name) => metricsOf(join(PACKAGES, folder, 'src', name)));
}

/** The metrics that a registry has before a process adds its own, in the order of the registry. */
async function metricsOfNode(): Promise<Metric[]> {
  const registered = new Set((await createMetrics('docs').render()).match(/(?<=^# HELP )\S+/gm));
  const registry = new Registry();
  collectDefaultMetrics({ register: registry });
  const all = registry.getMetricsAsArray() as unknown as readonly RegisteredMetric[];
  return all
    .filter(({ name }) => registered.has(name) && !OF_LINUX.has(name))
    .map(({ name, type, help, labelNames = [] }) => ({
      name,
      kind: type,
      label: labelNames.join(', '),
      meaning: help,
    }));
}

const tableOf = (metrics: readonly Metric[]): string =>
  table(
    ['metric', 'kind', 'labels', 'meaning'],
    metrics.map(({ name, kind, label, meaning }) => [code(name), kind, code(label), meaning]),
  );

/** The page as Markdown. */
export async function metricsPage(): Promise<string> {
  const sections = OWNERS.map(([folder, title]) => {
    const note = folder === 'worker' ? `${OF_WORKERS}\n\n` : '';
    return `## ${title}\n\n${note}${tableOf(metricsBelow(folder))}`;
  });
  const ofNode = tableOf(await metricsOfNode());
  const onLinux = [...OF_LINUX].map(code).join(', ');
  return page(
    'Metrics',
    INTRODUCTION,
    ...sections,
    `## Node\n\nEach process has these of its runtime, and on Linux ${onLinux}.\n\n${ofNode}`,
  );
}
