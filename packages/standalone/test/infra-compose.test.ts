/** `infra/compose.yaml`, checked against the services' settings. */
import { describe, expect, test } from 'vitest';
import { parse } from 'yaml';
import { parseSettingsOf, readInfra, SECRETS, SERVICES } from './infra-files.ts';

test('compose.yaml gives each service the settings that it needs to start', () => {
  const { services } = parse(readInfra('compose.yaml'), { merge: true }) as {
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
        parseSettingsOf(service, {
          NODE_ENV: 'production',
          ...Object.fromEntries(environment),
        }),
      service,
    ).not.toThrow();
  }
});

test('compose.yaml hands on each line of example.env, and who sends mails with where they go out', () => {
  const compose = readInfra('compose.yaml');
  const names = [...readInfra('example.env').matchAll(/^([A-Z_]+)=/gm)].map(
    ([, name = '']) => name,
  );
  expect(names).toEqual(
    expect.arrayContaining(['SMTP_URL', 'MAIL_FROM', 'API_TRUSTED_PROXIES', 'INTAKE_IS_HTTPS']),
  );
  for (const name of names) expect(compose).toContain(`\${${name}:`);
  for (const [, name = ''] of compose.matchAll(/\$\{(\w+):/g))
    if (name !== 'LOG_LEVEL') expect(names).toContain(name);
});

// Intake, which every client reaches, must not have the login that reads every secret.
test('each container of compose.yaml has one login of Postgres: of its role for a service, of the owner for migrations', () => {
  const { services } = parse(readInfra('compose.yaml'), { merge: true }) as {
    services: Record<string, { environment: Record<string, string | number> }>;
  };
  const loginsOf = (name: string) =>
    Object.entries(services[name]?.environment ?? {}).filter(([, value]) =>
      /postgres:|POSTGRES_/.test(String(value)),
    );
  const urlOf = (user: string, password: string) => [
    'DATABASE_URL',
    `postgres://${user}:\${${password}:?see infra/example.env}@postgres:5432/sluice`,
  ];
  for (const service of SERVICES)
    expect(loginsOf(service)).toEqual([
      urlOf(`sluice_${service}_login`, `${service.toUpperCase()}_POSTGRES_PASSWORD`),
    ]);
  expect(loginsOf('migrate')).toEqual([urlOf('sluice', 'POSTGRES_PASSWORD')]);
});

test('Postgres of compose.yaml makes those logins with the database', () => {
  const { services } = parse(readInfra('compose.yaml'), { merge: true }) as {
    services: Record<string, { environment: Record<string, string>; volumes: string[] }>;
  };
  const { environment = {}, volumes = [] } = services['postgres'] ?? {};
  // Its image runs the files of this folder.
  expect(volumes).toContain('./postgres/logins.sql:/docker-entrypoint-initdb.d/logins.sql:ro');
  const logins = readInfra('postgres/logins.sql');
  for (const service of SERVICES) {
    const password = `${service.toUpperCase()}_POSTGRES_PASSWORD`;
    expect(environment[password]).toBe(`\${${password}:?see infra/example.env}`);
    expect(logins).toContain(`\\getenv ${service} ${password}\n`);
    expect(logins).toContain(
      `alter role sluice_${service}_login login inherit password :'${service}';`,
    );
  }
});

describe('the stores of compose.yaml', () => {
  const { services } = parse(readInfra('compose.yaml'), { merge: true }) as {
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

  // `up` gives up with the first unhealthy one, and services that wait for it are not started.
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

test('no service of compose.yaml is root, gains rights, or writes outside of its volumes', () => {
  const { services } = parse(readInfra('compose.yaml'), { merge: true }) as {
    services: Record<string, Record<string, unknown>>;
  };
  expect(Object.keys(services)).toHaveLength(8);
  for (const [name, service] of Object.entries(services)) {
    expect(service, name).toMatchObject({
      read_only: true,
      cap_drop: ['ALL'],
      security_opt: ['no-new-privileges:true'],
      tmpfs: expect.arrayContaining(['/tmp']),
    });
    for (const given of ['cap_add', 'privileged', 'pid', 'devices'])
      expect(service).not.toHaveProperty(given);
    expect(service['user'] ?? 'of the image', name).not.toMatch(/^(?:root|0)(?::|$)/);
  }
  // Their images begin as root, to make their folders the server's own; the other images do not.
  for (const name of ['postgres', 'redis']) expect(services[name]?.['user']).toBe(name);
  expect(readInfra('Dockerfile')).toMatch(/^USER node$/m);
});

test('Redis asks for a password, which every service and the health check have', () => {
  const { services } = parse(readInfra('compose.yaml'), { merge: true }) as {
    services: Record<string, { command?: string; environment: Record<string, string> }>;
  };
  const password = '${REDIS_PASSWORD:?see infra/example.env}';
  expect(services['redis']?.command).toContain(` --requirepass ${password} `);
  expect(services['redis']?.environment['REDISCLI_AUTH']).toBe(password);
  for (const service of SERVICES)
    expect(services[service]?.environment['REDIS_URL']).toBe(`redis://:${password}@redis:6379`);
});

test('images of others are named by full version', () => {
  const { services } = parse(readInfra('compose.yaml'), { merge: true }) as {
    services: Record<string, { image: string }>;
  };
  const bases = [...readInfra('Dockerfile').matchAll(/^FROM (\S+)/gm)].map(
    ([, image = '']) => image,
  );
  const images = [...Object.values(services).map(({ image }) => image), ...bases];
  expect(images).toContain('sluice');
  for (const image of images)
    if (image !== 'sluice') expect(image).toMatch(/:v?\d+\.\d+(?:\.\d+)?(?:-[a-z-]+)?$/);
});

test('compose.yaml publishes ports on this machine alone unless PUBLISH_ADDRESS is set', () => {
  const { services } = parse(readInfra('compose.yaml'), { merge: true }) as {
    services: Record<string, { ports?: readonly unknown[]; network_mode?: string }>;
  };
  const published = Object.values(services).flatMap(({ ports = [] }) => ports);
  expect(published.length).toBeGreaterThan(2);
  for (const port of published)
    expect(port).toMatch(/^\$\{PUBLISH_ADDRESS:-127\.0\.0\.1\}:(\d+):\1$/);
  for (const { network_mode: mode } of Object.values(services)) expect(mode).toBeUndefined();
});
