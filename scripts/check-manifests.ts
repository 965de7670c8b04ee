/** Part of `npm run check`: `infra/kubernetes` against the schemas of the kinds that it uses. The rules: `manifest-problems.ts`. */
import { readdirSync, readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { SCHEMAS_FILE, type KubernetesSchemas } from './kubernetes-schemas.ts';
import { createManifestJudge } from './manifest-problems.ts';

const FOLDER = fileURLToPath(new URL('.', SCHEMAS_FILE));
const schemas = JSON.parse(readFileSync(SCHEMAS_FILE, 'utf8')) as KubernetesSchemas;
const files = readdirSync(FOLDER, { recursive: true, encoding: 'utf8' })
  .filter((path) => /\.ya?ml$/.test(path))
  .map((path) => ({ path, text: readFileSync(`${FOLDER}${path}`, 'utf8') }));
const problems = createManifestJudge(schemas)(files);
for (const problem of problems) console.error(problem);
if (files.length === 0) console.error(`${FOLDER} has no manifests`);
process.exitCode = problems.length === 0 && files.length > 0 ? 0 : 1;
