/**
 * `npm run chaos:billing -- --seed N`: every crash of every purchase workflow, with a vendor that fails
 * at random; the same seed is the same run. Without a seed, one that nobody has chosen.
 */
import { spawnSync } from 'node:child_process';
import { fileURLToPath } from 'node:url';

const ROOT = fileURLToPath(new URL('..', import.meta.url));
const at = process.argv.indexOf('--seed');
const seed = at > 0 ? Number(process.argv[at + 1]) : Math.floor(Math.random() * 2 ** 31);
if (!Number.isSafeInteger(seed)) {
  console.error('npm run chaos:billing -- --seed N');
  process.exit(2);
}
console.log(`seed ${seed}`);
const { status } = spawnSync(
  `${ROOT}node_modules/.bin/vitest`,
  ['run', 'packages/worker/test/integration/crash-matrix.test.ts'],
  {
    cwd: ROOT,
    stdio: 'inherit',
    env: {
      ...process.env,
      PATH: `${ROOT}node_modules/.bin:${process.env.PATH}`,
      CHAOS_SEED: String(seed),
    },
  },
);
process.exit(status ?? 1);
