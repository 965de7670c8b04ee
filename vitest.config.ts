/** One vitest process for every package: one set-up, one Postgres, one Redis. */
import { existsSync, readdirSync, statfsSync } from 'node:fs';
import { basename, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { defineConfig } from 'vitest/config';

// Test files and the services that they start load the same thousand modules again and again.
process.env['NODE_COMPILE_CACHE'] ??= join(import.meta.dirname, 'node_modules/.cache/node');

// A run clones two thousand databases of a thousand files each, which took four fifths of Postgres' CPU on a disk's file
// system (61 s and 13 s for 22 files of the API's tests). At most 1.1 GB at a time.
if (isMemory('/dev/shm', 4e9)) process.env['TMPDIR'] ??= '/dev/shm';

function isMemory(path: string, bytesMin: number): boolean {
  const TMPFS = 0x0102_1994;
  if (!existsSync(path) || process.availableMemory() < 2 * bytesMin) return false;
  const { type, bavail, bsize } = statfsSync(path);
  return type === TMPFS && bavail * bsize >= bytesMin;
}

const packages = [...readdirSync(new URL('packages', import.meta.url)), '../benchmarks'].filter(
  (name) => existsSync(new URL(`packages/${name}/package.json`, import.meta.url)),
);

export default defineConfig({
  test: {
    globalSetup: ['scripts/test-services.ts'],
    // uWebSockets.js and Postgres' clients want processes. Four on two cores: many a test waits for a server
    // that starts or for a deadline.
    pool: 'forks',
    isolate: true,
    maxWorkers: 4,
    testTimeout: 40_000,
    hookTimeout: 60_000,
    teardownTimeout: 30_000,
    projects: packages.map((name) => ({
      extends: true,
      test: {
        name: basename(name),
        root: fileURLToPath(new URL(`packages/${name}`, import.meta.url)),
        include: ['test/*.test.ts', 'test/integration/*.test.ts'],
      },
    })),
  },
});
