/** Files of `infra/`, checked against running services: settings, durability, metrics, runbooks. */
import { existsSync } from 'node:fs';
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { readRedisDurability } from '@sluice/platform/redis/redis-durability';
import { startRedisServer } from '@sluice/platform/testing/redis-server';
import { Redis } from 'ioredis';
import { sql } from 'kysely';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { parse, parseAllDocuments } from 'yaml';
import { startFleet, type Fleet } from './fleet-under-test.ts';

const ROOT = fileURLToPath(new URL('../../../../', import.meta.url));
const read = (path: string): Promise<string> => readFile(join(ROOT, 'infra', path), 'utf8');

interface Container {
  readonly args: readonly string[];
  readonly ports?: readonly { readonly containerPort: number }[];
}
interface Manifest {
  readonly kind: string;
  readonly data?: Readonly<Record<string, string>>;
  readonly spec?: { readonly template?: { readonly spec: { readonly containers: Container[] } } };
}

const manifests = async (name: string): Promise<Manifest[]> =>
  parseAllDocuments(await read(`kubernetes/${name}`)).map(
    (document) => document.toJS() as Manifest,
  );

test('redis.conf makes a Redis that keeps every confirmed write', async () => {
  const directory = await mkdtemp(join(tmpdir(), 'sluice-infra-'));
  const server = await startRedisServer({
    directory,
    appendFsync: 'no',
    extraArguments: ['--include', join(ROOT, 'infra/redis/redis.conf')],
  });
  const redis = new Redis(server.url);
  try {
    expect(await readRedisDurability(redis, 0)).toMatchObject({ isSafe: true });
  } finally {
    redis.disconnect();
    await server.stop();
    await rm(directory, { recursive: true, force: true });
  }
});

describe('compose.yaml and the manifests', () => {
  let known: ReadonlySet<string>;
  beforeAll(async () => {
    // The table is generated from the schemas and held by `npm run check`.
    const settingsPage = await readFile(join(ROOT, 'docs/reference/settings.md'), 'utf8');
    known = new Set(
      [...settingsPage.matchAll(/^\| `([A-Z_]+)` \|/gm)].map(([, name = '']) => name),
    );
  });

  test('set only settings that there are', async () => {
    const compose = parse(await read('compose.yaml'), { merge: true }) as {
      services: Record<string, { image: string; environment?: Record<string, unknown> }>;
    };
    const used = Object.values(compose.services)
      .filter(({ image }) => image === 'sluice')
      .flatMap(({ environment }) => Object.keys(environment ?? {}));
    const [settings] = await manifests('settings.yaml');
    used.push(...Object.keys(settings?.data ?? {}));
    const dockerfile = await read('Dockerfile');
    used.push(...[...dockerfile.matchAll(/\b([A-Z]+(?:_[A-Z]+)+)=/g)].map(([, name = '']) => name));
    expect(used.length).toBeGreaterThan(8);
    // Node's own.
    const nodes = ['NODE_COMPILE_CACHE', 'UV_THREADPOOL_SIZE'];
    const ours = used.filter((name) => !nodes.includes(name));
    expect(ours.filter((name) => !known.has(name))).toEqual([]);
  });

  test('run in an image that owns the folders to which its services write', async () => {
    const settingsPage = await readFile(join(ROOT, 'docs/reference/settings.md'), 'utf8');
    const written = [...settingsPage.matchAll(/^\| `([A-Z_]+)` \| `\.sluice\//gm)];
    expect(written.length).toBeGreaterThan(1);
    const dockerfile = await read('Dockerfile');
    const owned = /chown node:node (.+)/.exec(dockerfile)?.[1]?.split(' ');
    for (const [, name = ''] of written) {
      const folder = new RegExp(`\\b${name}=(\\S+)`).exec(dockerfile)?.[1];
      expect(owned, name).toContain(folder);
    }
  });

  test('run in an image that has every import of its scripts', async () => {
    const dockerfile = (await read('Dockerfile')).replaceAll('\\\n', ' ');
    const [, list = ''] = /^COPY ((?:scripts\/\S+\s+)+)scripts\/$/m.exec(dockerfile) ?? [];
    const copied = list.split(/\s+/).filter((name) => name !== '');
    expect(copied).toContain('scripts/migrate.ts');
    for (const name of copied) {
      const text = await readFile(join(ROOT, name), 'utf8');
      for (const [, imported = ''] of text.matchAll(/from '\.\/([\w.-]+)'/g))
        expect(copied, name).toContain(`scripts/${imported}`);
    }
    // And the image has the scripts of the command line.
    const commands = await readFile(
      join(ROOT, 'packages/command-line/src/commands/script-commands.ts'),
      'utf8',
    );
    for (const [, script = ''] of commands.matchAll(/runScript\('(\w+)'/g))
      expect(copied).toContain(`scripts/${script}.ts`);
  });

  test('run programs that there are', async () => {
    const compose = parse(await read('compose.yaml'), { merge: true }) as {
      services: Record<string, { image: string; command: string }>;
    };
    const programs = Object.values(compose.services)
      .filter(({ image }) => image === 'sluice')
      .map(({ command }) => command);
    for (const name of ['intake', 'api', 'worker', 'migrate']) {
      for (const { spec } of await manifests(`${name}.yaml`)) {
        programs.push(...(spec?.template?.spec.containers ?? []).flatMap(({ args }) => args));
      }
    }
    expect(programs).toHaveLength(8);
    expect(programs.filter((program) => !existsSync(join(ROOT, program)))).toEqual([]);
  });
});

describe('against running services', () => {
  let fleet: Fleet;
  let pages: readonly string[];
  let exposed: ReadonlySet<string>;
  beforeAll(async () => {
    fleet = await startFleet();
    pages = await Promise.all(
      [fleet.intake, fleet.api, fleet.worker].map(async ({ url }) =>
        (await fetch(`${url}/metrics`)).text(),
      ),
    );
    exposed = new Set(
      pages.flatMap((page) => [...page.matchAll(/^# TYPE (\S+)/gm)].map(([, name = '']) => name)),
    );
  });
  afterAll(() => fleet.close());

  const namesIn = (text: string): string[] => [
    ...new Set(text.match(/\b(?:sluice|process|nodejs)_[a-z0-9_]+/g)),
  ];

  test.each([
    'observability/alerts.yaml',
    'observability/grafana/sluice.json',
    'kubernetes/keda/worker.yaml',
    '../docs/operations/runbooks/events-are-not-processed.md',
    '../docs/operations/runbooks/redis-lost.md',
  ])('%s asks for metrics that are exposed', async (path) => {
    const names = namesIn(await read(path));
    expect(names.length).toBeGreaterThan(1);
    expect(names.filter((name) => !exposed.has(name))).toEqual([]);
  });

  test('alerts choose metrics by labels that they have', async () => {
    const alerts = await read('observability/alerts.yaml');
    const chosen = [...alerts.matchAll(/(\w+)\{(\w+="[^"]+")\}/g)];
    expect(chosen.length).toBeGreaterThan(2);
    for (const [text, name, label] of chosen)
      expect(
        pages.some((page) => new RegExp(`^${name}\\{[^}]*${label}[^}]*\\}`, 'm').test(page)),
        text,
      ).toBe(true);
  });

  test('the reference describes every metric that is exposed', async () => {
    const page = await readFile(join(ROOT, 'docs/reference/metrics.md'), 'utf8');
    const described = new Set(
      [...page.matchAll(/`((?:sluice|nodejs|process)_\w+)`/g)].map(([, name = '']) => name),
    );
    const own = [...exposed].filter((name) => /^(sluice|nodejs|process)_/.test(name));
    expect(own.length).toBeGreaterThan(40);
    expect(own.filter((name) => !described.has(name))).toEqual([]);
  });

  test('every metric of ours has its unit or its count in its name', () => {
    const ours = [...exposed].filter((name) => name.startsWith('sluice_'));
    expect(ours.length).toBeGreaterThan(15);
    expect(
      ours.filter(
        (name) =>
          !/_(total|seconds|bytes|envelopes|deliveries|lanes|operations|purchases|brokers|ratio|info)$/.test(
            name,
          ),
      ),
    ).toEqual([]);
  });

  test('postgresql.conf names settings of Postgres, keeps every commit and logs no values', async () => {
    const lines = [...(await read('postgres/postgresql.conf')).matchAll(/^([a-z_.]+) = (.+)$/gm)];
    const settings = new Map(lines.map(([, name = '', value = '']) => [name, value]));
    const { rows } = await sql<{ name: string }>`select name from pg_settings`.execute(
      fleet.database,
    );
    const names = new Set(rows.map(({ name }) => name.toLowerCase()));
    expect([...settings.keys()].filter((name) => !names.has(name))).toEqual([]);
    for (const name of ['fsync', 'full_page_writes', 'synchronous_commit']) {
      expect(settings.get(name), name).toBe('on');
    }
    // Values are people's: of statements, in plans, and of the row that broke a constraint.
    expect(settings.get('log_parameter_max_length')).toBe('0');
    expect(settings.get('session_preload_libraries')).toBeUndefined();
    expect(settings.get('log_error_verbosity')).toBe('terse');
  });
});

async function alertRules() {
  const { groups } = parse(await read('observability/alerts.yaml')) as {
    groups: {
      rules: { alert: string; labels: { severity: string }; annotations: { runbook: string } }[];
    }[];
  };
  const rules = groups.flatMap((group) => group.rules);
  expect(rules.length).toBeGreaterThan(4);
  return rules;
}

test('every alert has a case for `npm run alerts` in which it fires', async () => {
  const { tests } = parse(await read('observability/alerts.test.yaml')) as {
    tests: { alert_rule_test?: { alertname: string; exp_alerts: unknown[] }[] }[];
  };
  const fired = tests
    .flatMap((each) => each.alert_rule_test ?? [])
    .filter((each) => each.exp_alerts.length > 0);
  const names = (await alertRules()).map(({ alert }) => alert);
  expect(new Set(fired.map(({ alertname }) => alertname))).toEqual(new Set(names));
});

test('the page about monitoring lists every alert with its severity', async () => {
  const page = await readFile(join(ROOT, 'docs/operations/monitoring.md'), 'utf8');
  const listed = [...page.matchAll(/^\| `([A-Z]\w+)` \| (page|ticket) \|/gm)].map(
    ([, alert, severity]) => `${alert} ${severity}`,
  );
  const rules = (await alertRules()).map(({ alert, labels }) => `${alert} ${labels.severity}`);
  expect(new Set(listed)).toEqual(new Set(rules));
});

test('every alert names a runbook that there is', async () => {
  const rules = await alertRules();
  expect(rules.filter(({ annotations }) => !existsSync(join(ROOT, annotations.runbook)))).toEqual(
    [],
  );
});
