/** What `infra/` says to Kubernetes, Prometheus and nginx, held to the services' settings. What needs them running: `integration/infra.test.ts`. */
import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { apiSettings } from '@sluice/api/settings';
import { PIPELINES_BATCH_SIZE_BYTES_MAX } from '@sluice/domain/limits';
import { intakeSettings } from '@sluice/intake/settings';
import { parseSettings } from '@sluice/platform/config';
import { workerSettings } from '@sluice/worker/settings';
import { describe, expect, test } from 'vitest';
import { parse, parseAllDocuments } from 'yaml';

const INFRA = fileURLToPath(new URL('../../../infra/', import.meta.url));
const read = (path: string): string => readFileSync(`${INFRA}${path}`, 'utf8');

/** What people put in the secret of Kubernetes (`infra/README.md`), and Compose into `.env`. */
const SECRETS = {
  DATABASE_URL: 'postgres://of-the-secret/sluice',
  REDIS_URL: 'redis://of-the-secret:6379',
  API_SECRET: 'a'.repeat(64),
  SEALING_KEYS: `1:${Buffer.alloc(32, 1).toString('base64')}`,
};
const SCHEMAS = { intake: intakeSettings, api: apiSettings, worker: workerSettings };
type ServiceName = keyof typeof SCHEMAS;
const SERVICES = Object.keys(SCHEMAS) as ServiceName[];
/** Idle connections of uWebSockets.js end after so long. */
const INTAKE_IDLE_SECONDS = 10;
/** Those of Fastify (`keepAliveTimeout`). */
const API_IDLE_SECONDS = 72;
/** A store that does not answer is waited for so long (`api/src/main.ts`, `worker/src/readiness.ts`). */
const READYZ_SECONDS_MAX = 2;

interface Probe {
  readonly httpGet: { readonly path: string; readonly port: string };
  readonly periodSeconds: number;
  readonly failureThreshold?: number;
  readonly timeoutSeconds?: number;
}
interface PodTemplate {
  readonly metadata: { readonly annotations: Readonly<Record<string, string>> };
  readonly spec: {
    readonly terminationGracePeriodSeconds: number;
    readonly automountServiceAccountToken?: boolean;
    readonly enableServiceLinks?: boolean;
    readonly securityContext?: object;
    readonly containers: readonly {
      readonly securityContext?: object;
      readonly envFrom?: readonly object[];
      readonly env?: readonly {
        readonly name: string;
        readonly valueFrom: { readonly secretKeyRef: { readonly key: string } };
      }[];
      readonly ports: readonly { readonly name: string; readonly containerPort: number }[];
      readonly readinessProbe: Probe;
      readonly livenessProbe: Probe;
      readonly startupProbe?: Probe;
      readonly lifecycle?: { readonly preStop: { readonly exec: { readonly command: string[] } } };
    }[];
  };
}
interface Manifest {
  readonly kind: string;
  readonly metadata: { readonly name: string };
  readonly data?: Readonly<Record<string, string>>;
  readonly spec: {
    readonly replicas?: number;
    readonly template?: PodTemplate;
    readonly scaleTargetRef?: { readonly name: string };
    readonly behavior?: { readonly scaleDown?: { readonly selectPolicy?: string } };
  };
}

const manifests = (name: string): Manifest[] =>
  parseAllDocuments(read(`kubernetes/${name}.yaml`)).map((each) => each.toJS() as Manifest);
const [configMap] = manifests('settings');
const defaultsOf = (service: ServiceName) =>
  parseSettings<(typeof SCHEMAS)[ServiceName]>(SCHEMAS[service], SECRETS) as unknown as Readonly<
    Record<string, number>
  >;

describe.each(SERVICES)('%s', (service) => {
  const port = defaultsOf(service)[`${service.toUpperCase()}_PORT`];
  const all = manifests(service);
  const template = all.find(({ spec }) => spec.template)?.spec.template;
  const [container] = template?.spec.containers ?? [];

  test('starts with what the manifests and the secret give it', () => {
    expect(() =>
      parseSettings<(typeof SCHEMAS)[ServiceName]>(SCHEMAS[service], {
        ...configMap?.data,
        ...SECRETS,
      }),
    ).not.toThrow();
  });

  test('is asked where it listens, by Kubernetes and by Prometheus', () => {
    expect(container?.ports).toEqual([{ name: 'http', containerPort: port }]);
    for (const probe of [container?.readinessProbe, container?.livenessProbe]) {
      expect(['/livez', '/readyz']).toContain(probe?.httpGet.path);
      expect(probe?.httpGet.port).toBe('http');
    }
    expect(container?.livenessProbe.httpGet.path).toBe('/livez');
    expect(template?.metadata.annotations['prometheus.io/port']).toBe(String(port));
    const { scrape_configs: jobs } = parse(read('observability/prometheus.yaml')) as {
      scrape_configs: { job_name: string; dns_sd_configs: { names: string[]; port: number }[] }[];
    };
    const [found] = jobs.find(({ job_name: name }) => name === service)?.dns_sd_configs ?? [];
    expect(found).toMatchObject({ names: [service], port });
  });

  test('is waited for as long as its answer to a probe may take', () => {
    const { httpGet, timeoutSeconds = 1 } = container?.readinessProbe ?? {};
    if (httpGet?.path === '/readyz') expect(timeoutSeconds).toBeGreaterThan(READYZ_SECONDS_MAX);
    else expect(httpGet?.path).toBe('/livez');
  });

  // Restoring a large database takes its time, and a pod that is killed meanwhile begins with a longer and longer pause.
  test('is given an hour for a start, in which it waits for its Postgres', () => {
    const { httpGet, periodSeconds = 0, failureThreshold = 0 } = container?.startupProbe ?? {};
    expect(httpGet).toEqual({ path: '/livez', port: 'http' });
    expect(periodSeconds * failureThreshold).toBeGreaterThanOrEqual(3_600);
  });

  test('is given the time that its end takes', () => {
    const pauseSeconds = Number(container?.lifecycle?.preStop.exec.command[1] ?? 0);
    const drainSeconds = (defaultsOf(service)['DRAIN_TIMEOUT_MS'] ?? 0) / 1_000;
    expect(template?.spec.terminationGracePeriodSeconds).toBeGreaterThan(
      pauseSeconds + drainSeconds,
    );
    const { services } = parse(read('compose.yaml'), { merge: true }) as {
      services: Record<string, { stop_grace_period: string }>;
    };
    expect(parseInt(services[service]?.stop_grace_period ?? '', 10)).toBeGreaterThan(drainSeconds);
  });

  test('has no number of processes in its manifest where a scaler says it: an apply would put it back', () => {
    for (const { spec } of all.filter((manifest) => manifest.spec.scaleTargetRef)) {
      const target = all.find(
        ({ metadata, spec: { template: pods } }) =>
          pods && metadata.name === spec.scaleTargetRef?.name,
      );
      expect(target, spec.scaleTargetRef?.name).toBeDefined();
      expect(target?.spec.replicas).toBeUndefined();
    }
  });

  test('is told of when not one process of it is left', () => {
    expect(read('observability/alerts.yaml')).toContain(
      `absent(process_start_time_seconds{service="${service}"})`,
    );
  });
});

const podsOf = (name: string) =>
  manifests(name).flatMap(({ spec }) => (spec.template ? [spec.template.spec] : []));

test.each([...SERVICES, 'migrate'])(
  '%s runs where a namespace takes pods of the standard `restricted` alone',
  (name) => {
    const [pod] = podsOf(name);
    expect(pod).toMatchObject({
      automountServiceAccountToken: false,
      securityContext: { runAsNonRoot: true, seccompProfile: { type: 'RuntimeDefault' } },
    });
    expect(pod?.containers[0]?.securityContext).toEqual({
      allowPrivilegeEscalation: false,
      readOnlyRootFilesystem: true,
      capabilities: { drop: ['ALL'] },
    });
  },
);

/** What a kubelet adds to a container for each service of the namespace (kubernetes.io, Service, environment variables). */
const linksTo = (service: string): [string, string][] => {
  const name = service.toUpperCase().replaceAll('-', '_');
  return [
    [`${name}_SERVICE_HOST`, '10.96.0.7'],
    [`${name}_SERVICE_PORT`, '80'],
    [`${name}_PORT`, 'tcp://10.96.0.7:80'],
    [`${name}_PORT_80_TCP`, 'tcp://10.96.0.7:80'],
  ];
};

test.each(SERVICES)('%s starts beside the services of the namespace', (name) => {
  const links = SERVICES.flatMap(manifests)
    .filter(({ kind }) => kind === 'Service')
    .flatMap(({ metadata }) => linksTo(metadata.name));
  expect(links.map(([link]) => link)).toEqual(expect.arrayContaining(['INTAKE_PORT', 'API_PORT']));
  const [pod] = podsOf(name);
  expect(() =>
    parseSettings<(typeof SCHEMAS)[ServiceName]>(SCHEMAS[name], {
      // Unless a pod says otherwise, it is given them.
      ...(pod?.enableServiceLinks === false ? {} : Object.fromEntries(links)),
      ...configMap?.data,
      ...SECRETS,
    }),
  ).not.toThrow();
});

test('intake, which everybody reaches, and migrations are given no secret that they do not need', () => {
  for (const name of ['intake', 'migrate']) {
    const [container] = podsOf(name)[0]?.containers ?? [];
    expect(JSON.stringify(container?.envFrom ?? [])).not.toContain('secretRef');
    const given = container?.env?.map(({ name: as, valueFrom }) => [
      as,
      valueFrom.secretKeyRef.key,
    ]);
    expect(given?.map(([as]) => as)).toContain('DATABASE_URL');
    for (const [as, key] of given ?? []) {
      expect(key).toBe(as);
      expect(Object.keys(intakeSettings.shape)).toContain(as);
    }
  }
});

test('an age that no worker can tell is told of: it is above no bound', () => {
  const alerts = read('observability/alerts.yaml');
  const bounded = ['sluice_unprocessed_oldest_seconds', 'sluice_undelivered_oldest_seconds'];
  for (const name of bounded) expect(alerts).toContain(`absent(${name})`);
});

test('no autoscaler takes an intake away: calls may wait on its disk, which nobody reads then', () => {
  const scaler = manifests('intake').find(({ kind }) => kind === 'HorizontalPodAutoscaler');
  expect(scaler?.spec.behavior?.scaleDown?.selectPolicy).toBe('Disabled');
});

test('compose.yaml gives each service what it cannot start without', () => {
  const { services } = parse(read('compose.yaml'), { merge: true }) as {
    services: Record<string, { environment: Record<string, string | number> }>;
  };
  for (const service of SERVICES) {
    const environment = Object.entries(services[service]?.environment ?? {}).map(
      ([name, value]) => {
        const given = String(value).replace(/\$\{(\w+)(?::-([^}]*)|:\?[^}]*)\}/g, (_, key, other) =>
          other === undefined ? (SECRETS[key as 'API_SECRET'] ?? 'given') : String(other),
        );
        return [name, given];
      },
    );
    expect(
      () =>
        parseSettings<(typeof SCHEMAS)[ServiceName]>(SCHEMAS[service], {
          NODE_ENV: 'production',
          ...Object.fromEntries(environment),
        }),
      service,
    ).not.toThrow();
  }
});

test('compose.yaml hands on each line of example.env, and who sends mails with where they go out', () => {
  const compose = read('compose.yaml');
  const names = [...read('example.env').matchAll(/^([A-Z_]+)=/gm)].map(([, name = '']) => name);
  expect(names).toEqual(
    expect.arrayContaining(['SMTP_URL', 'MAIL_FROM', 'API_TRUSTED_PROXIES', 'INTAKE_IS_HTTPS']),
  );
  for (const name of names) expect(compose).toContain(`\${${name}:`);
  for (const [, name = ''] of compose.matchAll(/\$\{(\w+):/g))
    if (name !== 'LOG_LEVEL') expect(names).toContain(name);
});

describe('the stores of compose.yaml', () => {
  const { services } = parse(read('compose.yaml'), { merge: true }) as {
    services: Record<
      string,
      {
        command: string;
        healthcheck?: { test: string; start_period?: string };
        depends_on?: Record<string, { condition: string }>;
      }
    >;
  };
  const awaited = new Set(
    Object.values(services).flatMap(({ depends_on: others = {} }) =>
      Object.entries(others).flatMap(([name, { condition }]) =>
        condition === 'service_healthy' ? [name] : [],
      ),
    ),
  );

  // `up` gives up with the first that is unhealthy, and what waits for it is not started.
  test('are given an hour for a start, in which they go over their logs', () => {
    expect([...awaited].toSorted()).toEqual(['postgres', 'redis']);
    for (const name of awaited) expect(services[name]?.healthcheck?.start_period, name).toBe('1h');
  });

  // The image's first start has a server for itself on a socket, which ends again: a migration then would fail, and `up` too.
  test('are asked as the services ask them: a Postgres that is being made is not healthy yet', () => {
    expect(services['postgres']?.healthcheck?.test).toMatch(/^pg_isready -h 127\.0\.0\.1 /);
  });

  test('are bounded, so that neither takes the memory of the other', () => {
    expect(services['redis']?.command).toMatch(/ --maxmemory \$\{REDIS_MAXMEMORY:-1gb\}$/);
    expect(services['postgres']?.command).toMatch(
      / -c shared_buffers=\$\{POSTGRES_SHARED_BUFFERS:-1GB\}$/,
    );
  });
});

test('compose.yaml publishes nothing beyond this machine unless it is told an address', () => {
  const { services } = parse(read('compose.yaml'), { merge: true }) as {
    services: Record<string, { ports?: readonly unknown[]; network_mode?: string }>;
  };
  const published = Object.values(services).flatMap(({ ports = [] }) => ports);
  expect(published.length).toBeGreaterThan(2);
  for (const port of published)
    expect(port).toMatch(/^\$\{PUBLISH_ADDRESS:-127\.0\.0\.1\}:(\d+):\1$/);
  for (const { network_mode: mode } of Object.values(services)) expect(mode).toBeUndefined();
});

describe('nginx', () => {
  const [intake = '', api = ''] = read('proxy/nginx.conf').split('listen 8444;');
  const [rest = '', stream = ''] = intake.split('location = /v1/stream');
  const [calls = '', files = ''] = api.split('location = /v1/imports');
  const secondsOf = (text: string, name: string): number =>
    Number(new RegExp(`^\\s*${name} (\\d+)s;`, 'm').exec(text)?.[1]);

  test('takes the largest body that intake does, by a bound of its own in a stream', () => {
    expect(PIPELINES_BATCH_SIZE_BYTES_MAX).toBe(1024 * 1024);
    expect(rest).toMatch(/^\s*client_max_body_size 1m;/m);
    expect(stream).toMatch(/^\s*client_max_body_size 0;/m);
  });

  test('gives an idle connection up before the service does: a call on it would be answered 502', () => {
    expect(secondsOf(rest, 'keepalive_timeout')).toBeLessThan(INTAKE_IDLE_SECONDS);
    const [, ofApi = ''] = rest.split('upstream api {');
    expect(secondsOf(ofApi, 'keepalive_timeout')).toBeLessThan(API_IDLE_SECONDS);
  });

  test('sends a call whose intake is gone to another one, and waits for none longer than intake takes', () => {
    const { INTAKE_COMMIT_DEADLINE_MS: deadlineMs = 0 } = defaultsOf('intake');
    expect(rest).toMatch(/^\s*proxy_next_upstream error timeout;/m);
    expect(secondsOf(rest, 'proxy_connect_timeout')).toBeLessThanOrEqual(2);
    expect(secondsOf(rest, 'proxy_read_timeout') * 1_000).toBeGreaterThan(2 * deadlineMs);
    expect(secondsOf(rest, 'proxy_read_timeout')).toBeLessThan(60);
  });

  test.each([
    ['intake', rest],
    ['the API', calls],
  ])('keeps what is for operators of %s from everybody else', (_name, text) => {
    const [, pattern = '^$', answer] = /^\s*location ~ (\S+) \{ return (\d+); \}/m.exec(text) ?? [];
    expect(answer).toBe('404');
    for (const path of ['/metrics', '/readyz']) expect(path).toMatch(new RegExp(pattern));
    for (const path of ['/livez', '/v1/track', '/v1/metrics'])
      expect(path).not.toMatch(new RegExp(pattern));
  });

  test('waits for the API as long as its longest answers take', () => {
    const { PURCHASE_WAIT_MS: purchaseMs = 0, VENDOR_TIMEOUT_MS: vendorMs = 0 } = defaultsOf('api');
    expect(secondsOf(calls, 'proxy_read_timeout') * 1_000).toBeGreaterThan(purchaseMs + vendorMs);
  });

  test('hands files on to the API as they come, of any size, and nothing else', () => {
    expect(files).toMatch(/^\s*proxy_request_buffering off;/m);
    expect(files).toMatch(/^\s*client_max_body_size 0;/m);
    expect(calls).not.toMatch(/proxy_request_buffering|client_max_body_size/);
  });

  test('tells the API who calls, and not what the caller says of itself', () => {
    expect(calls).toMatch(/^\s*proxy_set_header X-Forwarded-For \$remote_addr;/m);
    expect(files).not.toContain('proxy_set_header');
  });

  test('writes no path down, for people are named in it', () => {
    expect(rest).toMatch(/^\s*access_log off;/m);
    expect(rest).toMatch(/^\s*error_log stderr crit;/m);
  });

  test('leaves it to intake to end a stream that is silent, which says why', () => {
    const { INTAKE_STREAM_IDLE_TIMEOUT_MS: idleMs = 0 } = defaultsOf('intake');
    expect(secondsOf(stream, 'client_body_timeout') * 1_000).toBeGreaterThan(idleMs);
  });
});
