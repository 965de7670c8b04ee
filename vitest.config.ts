/** One vitest process for every package: one set-up, one Postgres, one Redis. */
import { existsSync, readdirSync } from 'node:fs';
import { basename, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { defineConfig } from 'vitest/config';

// Test files and the services that they start load the same thousand modules again and again.
process.env['NODE_COMPILE_CACHE'] ??= join(import.meta.dirname, 'node_modules/.cache/node');

const packages = [...readdirSync(new URL('packages', import.meta.url)), '../benchmarks'].filter(
  (name) => existsSync(new URL(`packages/${name}/package.json`, import.meta.url)),
);

export default defineConfig({
  test: {
    globalSetup: ['scripts/test-services.ts'],
    // uWebSockets.js and Postgres' clients want processes. Three on two cores: many a test waits for a server
    // that starts or for a deadline.
    pool: 'forks',
    isolate: true,
    maxWorkers: 3,
    testTimeout: 20_000,
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
