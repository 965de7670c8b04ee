/** Mistakes in manifests. An apply would refuse them, or would drop them without a warning. */
import { readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { SCHEMAS_FILE, type KubernetesSchemas } from '../kubernetes-schemas.ts';
import { createManifestJudge } from '../manifest-problems.ts';

const schemas = JSON.parse(readFileSync(SCHEMAS_FILE, 'utf8')) as KubernetesSchemas;
const judge = createManifestJudge(schemas);
const read = (path: string) => readFileSync(new URL(path, SCHEMAS_FILE), 'utf8');

/** Problems of a file as it is with one text replaced. */
function problemsWith(path: string, from: string, to: string): string[] {
  const text = read(path);
  expect(text).toContain(from);
  const kustomization = { path: 'kustomization.yaml', text: `resources: [${path}]` };
  expect(judge([kustomization, { path, text }])).toEqual([]);
  return judge([kustomization, { path, text: text.replace(from, to) }]);
}

test.each([
  ['a field that is misspelt', 'intake.yaml', 'serviceName:', 'serviseName:', /serviseName/],
  ['a field far inside', 'worker.yaml', 'timeoutSeconds: 3', 'timeoutSecond: 3', /timeoutSecond/],
  [
    'a text for a number',
    'api.yaml',
    'replicas: 2',
    "replicas: 'two'",
    /\/spec\/replicas .*integer/,
  ],
  [
    'a number for a text',
    'settings.yaml',
    "SHARD_COUNT: '16'",
    'SHARD_COUNT: 16',
    /SHARD_COUNT .*string/,
  ],
  [
    'a field that is missing',
    'intake.yaml',
    'selector: { matchLabels: { app: intake } }\n  template',
    'template',
    /selector/,
  ],
  [
    'a version that is gone',
    'intake.yaml',
    'autoscaling/v2\n',
    'autoscaling/v2beta2\n',
    /no schema/,
  ],
  [
    'a kind that there is not',
    'network.yaml',
    'kind: NetworkPolicy',
    'kind: NetworkPolice',
    /no schema/,
  ],
  ['a name that is taken', 'network.yaml', 'name: into-api', 'name: into-intake', /name is taken/],
  ['a key that is there twice', 'api.yaml', 'replicas: 2', 'replicas: 2\n  replicas: 3', /unique/],
  ['a field of a scaler', 'keda/worker.yaml', 'minReplicaCount', 'minReplicas', /minReplicas/],
  ['a kind of path', 'ingress/ingress.yaml', 'pathType: Exact', 'pathTyp: Exact', /pathTyp/],
  ['a value of a route', 'gateway/gateway.yaml', 'type: Exact', 'type: Exactly', /Exact/],
  ['a time of a route', 'gateway/gateway.yaml', 'request: 0s', 'request: forever', /pattern/],
])('%s is told', (_what, path, from, to, problem) => {
  expect(problemsWith(path, from, to).join('\n')).toMatch(problem);
});

test('a file that no kustomization names is never applied, and one that is not there is', () => {
  const kustomization = {
    path: 'kustomization.yaml',
    text: 'resources: [gone.yaml]\nresource: []',
  };
  const orphan = { path: 'namespace.yaml', text: read('namespace.yaml') };
  expect(judge([kustomization, orphan])).toEqual([
    'kustomization.yaml: resource is no field that kustomizations here have',
    'kustomization.yaml: there is no gone.yaml',
    'namespace.yaml: no kustomization names it',
  ]);
});
