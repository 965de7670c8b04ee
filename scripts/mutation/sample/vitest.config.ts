/** For the test of `npm run mutate`: as `../vitest.config.ts`, without Postgres and Redis. */
import { fileURLToPath } from 'node:url';
import { defineConfig } from 'vitest/config';
import { mutantPlugin } from '../mutant-plugin.ts';

/** @public Vitest reads it. */
export default defineConfig({
  plugins: [mutantPlugin()],
  test: {
    root: fileURLToPath(new URL('.', import.meta.url)),
    setupFiles: [fileURLToPath(new URL('../end-stuck-process.ts', import.meta.url))],
    include: ['*.test.ts'],
    pool: 'forks',
    maxWorkers: 1,
    bail: 1,
    fsModuleCache: false,
  },
});
