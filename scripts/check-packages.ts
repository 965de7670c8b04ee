/** Part of `npm run check`: licences, origins and install scripts of all packages, by `package-lock.json`. The rules: `package-rules.ts`. */
import { readFileSync } from 'node:fs';
import { packageProblems, type LockedEntry } from './package-rules.ts';

const read = (name: string): unknown =>
  JSON.parse(readFileSync(new URL(`../${name}`, import.meta.url), 'utf8'));

const { packages } = read('package-lock.json') as { packages: Record<string, LockedEntry> };
const { allowScripts } = read('package.json') as { allowScripts: Record<string, boolean> };
const problems = packageProblems(packages, allowScripts);
for (const problem of problems) console.error(problem);
process.exitCode = problems.length === 0 ? 0 : 1;
