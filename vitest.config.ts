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

const packages = [
  ...readdirSync(new URL('packages', import.meta.url)),
  '../benchmarks',
  '../scripts',
].filter((name) => existsSync(new URL(`packages/${name}/test`, import.meta.url)));

const pathOf = (file: string): string => fileURLToPath(new URL(file, import.meta.url));
const FRESH_MODULES = pathOf('scripts/fresh-modules.ts');

/** Tests of public clients, one of which sets the dispatcher of every `fetch` in its process. */
const OF_THE_WHOLE_PROCESS: ReadonlySet<string> = new Set(['standalone']);
/** Its tests of the web console, which set no such thing. The files of a process share a browser. */
const CONSOLE = 'test/integration/console/**/*.test.ts';

/** Packages whose code sends statements to Postgres. */
const OF_POSTGRES: ReadonlySet<string> = new Set(['database', 'api', 'worker']);

const projectOf = (
  name: string,
  { isolate = false, include = ['test/**/*.test.ts'], exclude = [] as string[], label = name } = {},
) => ({
  extends: true as const,
  test: {
    name: label,
    root: pathOf(`packages/${name}`),
    // Otherwise as the whole, which `npm run mutate` isolates.
    ...(isolate && { isolate }),
    ...(OF_POSTGRES.has(name) && {
      setupFiles: [
        FRESH_MODULES,
        pathOf('packages/database/test/support/watch-sent-statements.ts'),
      ],
    }),
    include,
    exclude: ['**/node_modules/**', ...exclude],
  },
});

export default defineConfig({
  test: {
    globalSetup: ['scripts/test-services.ts'],
    // uWebSockets.js and Postgres' clients want processes. Four on two cores: many a test waits for a server
    // that starts or for a deadline.
    pool: 'forks',
    // The files of a package follow one another in four processes. With a process for each file, loading libraries took a
    // seventh of their time. With four it takes a 25th (67 files: 207 and 184 s of CPU). `fresh-modules.ts` gives each file
    // its own modules of ours. A process has no limit of memory then. The largest heap seen was 273 MB.
    isolate: false,
    setupFiles: [FRESH_MODULES],
    maxWorkers: 4,
    // Longer than any wait in a test: on a busy machine too, a failed wait reports the condition that it waited for.
    testTimeout: 180_000,
    // A hook may start a fleet or a browser, ten times slower on a busy machine.
    hookTimeout: 180_000,
    teardownTimeout: 30_000,
    projects: [
      ...packages.map((name) =>
        OF_THE_WHOLE_PROCESS.has(name)
          ? projectOf(name, { isolate: true, exclude: [CONSOLE] })
          : projectOf(name, { label: basename(name) }),
      ),
      projectOf('standalone', { include: [CONSOLE], label: 'standalone-console' }),
    ],
  },
});
