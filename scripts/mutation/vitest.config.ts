/** The project's tests as `npm run mutate` runs them: with the active mutant, and each file in a process of its own. */
import { fileURLToPath } from 'node:url';
import { defineConfig, mergeConfig } from 'vitest/config';
import project from '../../vitest.config.ts';
import { mutantPlugin } from './mutant-plugin.ts';

/** @public Vitest reads it. */
export default mergeConfig(
  project,
  defineConfig({
    plugins: [mutantPlugin()],
    test: {
      root: fileURLToPath(new URL('../..', import.meta.url)),
      setupFiles: [fileURLToPath(new URL('end-stuck-process.ts', import.meta.url))],
      // A later mutant must not find the state of an earlier one in its process.
      isolate: true,
      maxWorkers: 2,
      // A test that fails by waiting has failed.
      testTimeout: 30_000,
      bail: 1,
      // Its key is the text on disk, which every mutant has in common.
      fsModuleCache: false,
    },
  }),
);
