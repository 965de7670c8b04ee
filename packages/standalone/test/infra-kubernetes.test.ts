/**
 * Files for Kubernetes and Prometheus, checked against the services' settings. Checks that need them running are in
 * `integration/infra.test.ts`.
 */
import { readFileSync } from 'node:fs';
import { intakeSettings } from '@sluice/intake/settings';
import { workerSettings } from '@sluice/worker/process/settings';
import { describe, expect, test } from 'vitest';
import { parse, parseAllDocuments } from 'yaml';
import { defaultsOf, parseSettingsOf, readInfra, SECRETS, SERVICES } from './infra-files.ts';

/** A store that does not answer is waited for so long (`api/src/main.ts`, `worker/src/process/readiness.ts`). */
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
        readonly valueFrom: {
          readonly secretKeyRef: { readonly name: string; readonly key: string };
        };
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
  parseAllDocuments(readInfra(`kubernetes/${name}.yaml`)).map((each) => each.toJS() as Manifest);
const [configMap] = manifests('settings');
describe.each(SERVICES)('%s', (service) => {
  const port = defaultsOf(service)[`${service.toUpperCase()}_PORT`];
  const adminPort = Number(configMap?.data?.[`${service.toUpperCase()}_ADMIN_PORT`]);
  const all = [...manifests(service), ...(service === 'worker' ? manifests('keda/worker') : [])];
  const template = all.find(({ spec }) => spec.template)?.spec.template;
  const [container] = template?.spec.containers ?? [];

  test('starts with the settings of the manifests and of the secret', () => {
    expect(() =>
      parseSettingsOf(service, {
        ...configMap?.data,
        ...SECRETS,
      }),
    ).not.toThrow();
  });

  test('gets the probes of Kubernetes and the scrapes of Prometheus at its own ports', () => {
    expect(container?.ports).toEqual([
      { name: 'http', containerPort: port },
      { name: 'admin', containerPort: adminPort },
    ]);
    expect(['/livez', '/readyz']).toContain(container?.readinessProbe.httpGet.path);
    expect(container?.readinessProbe.httpGet.port).toBe('http');
    expect(container?.livenessProbe.httpGet).toEqual({ path: '/livez', port: 'admin' });
    expect(template?.metadata.annotations['prometheus.io/port']).toBe(String(adminPort));
    const { scrape_configs: jobs } = parse(readInfra('observability/prometheus.yaml')) as {
      scrape_configs: { job_name: string; dns_sd_configs: { names: string[]; port: number }[] }[];
    };
    const [found] = jobs.find(({ job_name: name }) => name === service)?.dns_sd_configs ?? [];
    expect(found).toMatchObject({ names: [service], port: adminPort });
    const compose = parse(readInfra('compose.yaml'), { merge: true }) as {
      services: Record<string, { environment?: Record<string, unknown> }>;
    };
    const name = `${service.toUpperCase()}_ADMIN_PORT`;
    expect(compose.services[service]?.environment?.[name]).toBe(adminPort);
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
    const { services } = parse(readInfra('compose.yaml'), { merge: true }) as {
      services: Record<string, { stop_grace_period: string }>;
    };
    expect(parseInt(services[service]?.stop_grace_period ?? '', 10)).toBeGreaterThan(drainSeconds);
  });

  test('leaves the number of processes to its scaler, because an apply would reset a number in the manifest', () => {
    for (const { spec } of all.filter((manifest) => manifest.spec.scaleTargetRef)) {
      const target = all.find(
        ({ metadata, spec: { template: pods } }) =>
          pods && metadata.name === spec.scaleTargetRef?.name,
      );
      expect(target, spec.scaleTargetRef?.name).toBeDefined();
      expect(target?.spec.replicas).toBeUndefined();
    }
  });

  test('has an alert that fires when its last process is gone', () => {
    expect(readInfra('observability/alerts.yaml')).toContain(
      `absent(process_start_time_seconds{service="${service}"})`,
    );
  });
});

const podsOf = (name: string) =>
  manifests(name).flatMap(({ spec }) => (spec.template ? [spec.template.spec] : []));

test.each([...SERVICES, 'migrate'])(
  '%s runs in a namespace that takes pods of the standard `restricted` alone',
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

/**
 * Variables that a kubelet adds to a container for each service of the namespace (kubernetes.io, Service, environment
 * variables).
 */
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
    parseSettingsOf(name, {
      // A pod gets them unless it disables them.
      ...(pod?.enableServiceLinks === false ? {} : Object.fromEntries(links)),
      ...configMap?.data,
      ...SECRETS,
    }),
  ).not.toThrow();
});

test.each([
  ...SERVICES.map((service) => [service, `sluice-${service}`] as const),
  ['migrate', 'sluice-owner'] as const,
])('%s has one login of Postgres, from a secret of its own', (name, secret) => {
  const [container] = podsOf(name)[0]?.containers ?? [];
  const logins = container?.env?.filter(({ name: as }) => as.endsWith('DATABASE_URL'));
  expect(logins).toEqual([
    { name: 'DATABASE_URL', valueFrom: { secretKeyRef: { name: secret, key: 'DATABASE_URL' } } },
  ]);
  // Of a whole secret it would get the logins of the others too.
  const whole = JSON.stringify(container?.envFrom ?? []);
  expect(whole.replaceAll('"secretRef":{"name":"sluice"}', '')).not.toContain('secretRef');
  // And the secrets are as the page has them made.
  const page = readFileSync(
    new URL('../../../docs/operations/kubernetes.md', import.meta.url),
    'utf8',
  );
  expect(page).toContain(`create secret generic ${secret} --from-literal=DATABASE_URL=`);
});

test.each([
  ['intake', intakeSettings],
  ['migrate', intakeSettings],
  ['worker', workerSettings],
] as const)('%s is given no secret that it does not need', (name, { shape }) => {
  const [container] = podsOf(name)[0]?.containers ?? [];
  expect(JSON.stringify(container?.envFrom ?? [])).not.toContain('secretRef');
  const given = container?.env?.map(({ name: as, valueFrom }) => [as, valueFrom.secretKeyRef.key]);
  expect(given?.map(([as]) => as)).toContain('DATABASE_URL');
  for (const [as, key] of given ?? []) {
    expect(key).toBe(as);
    expect(Object.keys(shape)).toContain(as);
  }
});

test('an age that no worker can measure has an alert of its own, because it exceeds no bound', () => {
  const alerts = readInfra('observability/alerts.yaml');
  const bounded = ['sluice_unprocessed_oldest_seconds', 'sluice_undelivered_oldest_seconds'];
  for (const name of bounded) expect(alerts).toContain(`absent(${name})`);
});

test('the autoscaler never removes an intake, because calls may wait on its disk', () => {
  const scaler = manifests('intake').find(({ kind }) => kind === 'HorizontalPodAutoscaler');
  expect(scaler?.spec.behavior?.scaleDown?.selectPolicy).toBe('Disabled');
});
