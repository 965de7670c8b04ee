/**
 * Network access in Kubernetes: `infra/kubernetes/network.yaml`, judged by the rules of `networking.k8s.io/v1`.
 * Networks differ in whether an `ipBlock` covers pods too (Calico does, Cilium does not). So ways that must be open are
 * tested with a network that does not, and ways that must be shut with one that does.
 */
import { readdirSync, readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { ADDRESS_RULES, parseNetwork } from '@sluice/domain/delivery/network-address';
import { describe, expect, test } from 'vitest';
import { parse, parseAllDocuments } from 'yaml';

const FOLDER = fileURLToPath(new URL('../../../infra/kubernetes/', import.meta.url));
const read = (file: string): string => readFileSync(`${FOLDER}${file}`, 'utf8');

type Labels = Readonly<Record<string, string>>;
interface Selector {
  readonly matchLabels?: Labels;
  readonly matchExpressions?: readonly {
    readonly key: string;
    readonly operator: string;
    readonly values: readonly string[];
  }[];
}
interface Peer {
  readonly podSelector?: Selector;
  readonly namespaceSelector?: Selector;
  readonly ipBlock?: { readonly cidr: string; readonly except?: readonly string[] };
}
interface Rule {
  readonly from?: readonly Peer[];
  readonly to?: readonly Peer[];
  readonly ports?: readonly { readonly port: number | string; readonly protocol?: string }[];
}
interface Policy {
  readonly kind: string;
  readonly spec: {
    readonly podSelector: Selector;
    readonly policyTypes: readonly ('Ingress' | 'Egress')[];
    readonly ingress?: readonly Rule[];
    readonly egress?: readonly Rule[];
  };
}
/** A pod, or, without a namespace, a host that is in no cluster. */
interface Place {
  readonly address: string;
  readonly namespace?: string;
  readonly labels?: Labels;
}

const { namespace: OURS, resources } = parse(read('kustomization.yaml')) as {
  namespace: string;
  resources: string[];
};
const documentsOf = (file: string): unknown[] =>
  parseAllDocuments(read(file)).map((each) => each.toJS() as unknown);
const policies = documentsOf('network.yaml') as Policy[];

function podOf(service: string): Place {
  const [template] = (
    documentsOf(`${service}.yaml`) as {
      spec?: {
        template?: {
          metadata?: { labels?: Labels };
          spec: { containers: { ports?: { name: string; containerPort: number }[] }[] };
        };
      };
    }[]
  ).flatMap(({ spec }) => (spec?.template ? [spec.template] : []));
  expect(template, service).toBeDefined();
  return { address: '10.1.0.7', namespace: OURS, labels: template?.metadata?.labels ?? {} };
}
const SERVICES = ['intake', 'api', 'worker'] as const;
const PORTS = { intake: 8080, api: 8090, worker: 8092 };
const ADMIN_PORTS = { intake: 9080, api: 9090, worker: 9092 };
const podIn = (namespace: string, labels: Labels = {}): Place => ({
  address: '10.1.0.9',
  namespace,
  labels,
});
const proxy = podIn('ingress-nginx');
const monitoring = podIn('monitoring');
const resolver = podIn('kube-system', { 'k8s-app': 'kube-dns' });
const host = (address: string): Place => ({ address });

interface Network {
  readonly hasPodsInIpBlocks: boolean;
}

function isOpen(
  from: Place,
  to: Place,
  port: number,
  { protocol = 'TCP', hasPodsInIpBlocks }: Network & { readonly protocol?: string },
): boolean {
  return (['Egress', 'Ingress'] as const).every((type) => {
    const [self, other] = type === 'Egress' ? [from, to] : [to, from];
    if (self.namespace !== OURS) return true;
    const held = policies.filter(
      ({ spec }) =>
        spec.policyTypes.includes(type) && isSelected(spec.podSelector, self.labels ?? {}),
    );
    const rules = held.flatMap(
      ({ spec }) => (type === 'Egress' ? spec.egress : spec.ingress) ?? [],
    );
    return (
      held.length === 0 ||
      rules.some(
        (rule) =>
          (rule.ports ?? [{ port, protocol }]).some(
            (each) => each.port === port && (each.protocol ?? 'TCP') === protocol,
          ) &&
          (type === 'Egress' ? rule.to : rule.from)?.some((peer) =>
            isPeer(peer, other, hasPodsInIpBlocks),
          ) !== false,
      )
    );
  });
}

function isPeer(peer: Peer, place: Place, hasPodsInIpBlocks: boolean): boolean {
  if (peer.ipBlock) {
    const { cidr, except = [] } = peer.ipBlock;
    if (place.namespace !== undefined && !hasPodsInIpBlocks) return false;
    return isWithin(place.address, cidr) && !except.some((range) => isWithin(place.address, range));
  }
  if (place.namespace === undefined) return false;
  const isInNamespace = peer.namespaceSelector
    ? isSelected(peer.namespaceSelector, { 'kubernetes.io/metadata.name': place.namespace })
    : place.namespace === OURS;
  return isInNamespace && isSelected(peer.podSelector ?? {}, place.labels ?? {});
}

function isSelected(
  { matchLabels = {}, matchExpressions = [] }: Selector,
  labels: Labels,
): boolean {
  return (
    Object.entries(matchLabels).every(([key, value]) => labels[key] === value) &&
    matchExpressions.every(({ key, operator, values }) => {
      expect(operator).toBe('In');
      return values.includes(labels[key] ?? '');
    })
  );
}

function isWithin(address: string, range: string): boolean {
  const [one, all] = [parseNetwork(address), parseNetwork(range)];
  if (!one || !all) throw new Error(`${address} or ${range} is no part of the address space`);
  return one.length === all.length && one.prefix.startsWith(all.prefix);
}

/** The first address of a range: the network's own if it is one. */
const firstOf = (range: string): string => range.split('/')[0] ?? '';

const open: Network = { hasPodsInIpBlocks: false };
const shut: Network = { hasPodsInIpBlocks: true };

test('an apply brings every file of the folder', () => {
  const files = readdirSync(FOLDER).filter(
    (file) => file.endsWith('.yaml') && file !== 'kustomization.yaml',
  );
  expect(resources.toSorted()).toEqual(files.toSorted());
});

test('connections without a rule are shut, both ways, for every pod of the namespace', () => {
  for (const name of [...SERVICES, 'migrate']) {
    const pod = podOf(name);
    expect(isOpen(podIn('default'), pod, 8080, shut), name).toBe(false);
    expect(isOpen(pod, podIn('default'), 80, shut), name).toBe(false);
  }
  expect(isOpen(podIn('default'), podIn(OURS, { app: 'new' }), 80, shut)).toBe(false);
  expect(isOpen(podIn(OURS, { app: 'new' }), host('93.184.215.14'), 443, shut)).toBe(false);
});

describe('into our pods', () => {
  test.each(['intake', 'api'] as const)('the proxy reaches %s on its port alone', (name) => {
    expect(isOpen(proxy, podOf(name), PORTS[name], open)).toBe(true);
    expect(isOpen(proxy, podOf(name), 9229, shut)).toBe(false);
    expect(isOpen(host('93.184.215.14'), podOf(name), PORTS[name], shut)).toBe(false);
  });

  test.each(SERVICES)('monitoring reads the metrics of %s', (name) => {
    expect(isOpen(monitoring, podOf(name), ADMIN_PORTS[name], open)).toBe(true);
    expect(isOpen(monitoring, podOf(name), PORTS[name], shut)).toBe(false);
    expect(isOpen(proxy, podOf(name), ADMIN_PORTS[name], shut)).toBe(false);
    expect(isOpen(monitoring, podOf(name), 9229, shut)).toBe(false);
  });

  test('the autoscaler of workers asks Prometheus in the namespace of monitoring', () => {
    expect(read('keda/worker.yaml')).toContain(`//prometheus.${monitoring.namespace}:`);
  });

  test('a worker takes no other connections, not even from its own', () => {
    for (const other of [proxy, podOf('intake'), podOf('api'), podOf('worker'), podIn('default')])
      expect(isOpen(other, podOf('worker'), PORTS.worker, shut)).toBe(false);
  });

  test('the API sends our own analytics to intake, and the other services do not call a neighbour', () => {
    expect(isOpen(podOf('api'), podOf('intake'), PORTS.intake, open)).toBe(true);
    for (const [from, to] of [
      ['worker', 'intake'],
      ['worker', 'api'],
      ['intake', 'api'],
      ['intake', 'worker'],
    ] as const)
      expect(isOpen(podOf(from), podOf(to), PORTS[to], shut), `${from} to ${to}`).toBe(false);
  });
});

describe('out of our pods', () => {
  test.each([...SERVICES, 'migrate'])('%s asks for names, Postgres and Redis', (name) => {
    const pod = podOf(name);
    for (const protocol of ['UDP', 'TCP']) {
      expect(isOpen(pod, resolver, 53, { ...open, protocol })).toBe(true);
      // NodeLocal DNSCache.
      expect(isOpen(pod, host('169.254.20.10'), 53, { ...open, protocol })).toBe(true);
    }
    for (const port of [5432, 6379, 26379])
      for (const store of [podIn('data'), host('10.20.30.40'), host('fd12::7')])
        expect(isOpen(pod, store, port, open)).toBe(true);
  });

  test.each(['worker', 'api'])('%s reaches the internet', (name) => {
    for (const address of ['93.184.215.14', '1.1.1.1', '2606:2800:21f:cb07:6820:80da:af6b:8b2c'])
      for (const port of [80, 443, 8443])
        expect(isOpen(podOf(name), host(address), port, open), address).toBe(true);
  });

  test.each(['intake', 'migrate'])('%s does not reach the internet', (name) => {
    expect(isOpen(podOf(name), host('93.184.215.14'), 443, shut)).toBe(false);
  });

  // A webhook's URL is a customer's. The worker judges the addresses of its name (network-address.ts), and so does
  // this.
  test.each(ADDRESS_RULES.map(({ range, kind }) => [range, kind]))(
    'no webhook leads to %s (%s)',
    (range) => {
      for (const name of ['worker', 'api'])
        for (const port of [80, 443, 8080, 10250])
          expect(isOpen(podOf(name), host(firstOf(range)), port, shut)).toBe(false);
    },
  );

  test('no webhook leads to a pod of the cluster', () => {
    for (const pod of [proxy, monitoring, resolver, podIn('data')])
      for (const port of [80, 443, 8080, 9090])
        expect(isOpen(podOf('worker'), pod, port, shut)).toBe(false);
  });

  test('a worker reaches the ports of the stores in any pod until the operator narrows the rule, as the page warns', () => {
    const reached = [5432, 6379, 26_379].filter((port) =>
      isOpen(podOf('worker'), podIn('data'), port, open),
    );
    expect(reached).toEqual([5432, 6379, 26_379]);
    const page = readFileSync(`${FOLDER}../../docs/operations/kubernetes.md`, 'utf8');
    expect(page).toContain('so narrow that rule first');
  });

  test('the metadata address is shut on every port, the port of names included', () => {
    for (const port of [53, 80, 443, 5432, 6379])
      for (const protocol of ['TCP', 'UDP'])
        for (const name of [...SERVICES, 'migrate'])
          expect(
            isOpen(podOf(name), host('169.254.169.254'), port, { ...shut, protocol }),
            `${name} ${port}`,
          ).toBe(false);
  });

  test.each(SERVICES)('%s sends traces to a collector in the monitoring namespace', (name) => {
    expect(isOpen(podOf(name), monitoring, 4318, open)).toBe(true);
  });
});
