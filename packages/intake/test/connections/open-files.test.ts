/** A kernel that allows too few files. */
import { execFileSync } from 'node:child_process';
import { join } from 'node:path';
import { expect, test } from 'vitest';

const MODULE = join(import.meta.dirname, '../../src/connections/open-files.ts');

/** The lines that a process with so many open files logs at its start, and the connections that it takes. */
function start(openFilesMax: number, wanted: number): { lines: unknown[]; count: number } {
  const program = `
    import { connectionCountWithin } from ${JSON.stringify(MODULE)};
    const lines = [];
    const logger = { info: (fields, message) => lines.push({ ...fields, message }) };
    const count = connectionCountWithin(${wanted}, logger);
    console.log(JSON.stringify({ lines, count }));`;
  const text = execFileSync(
    'sh',
    [
      '-c',
      `ulimit -n ${openFilesMax}; exec "$@"`,
      'sh',
      process.execPath,
      '--input-type=module',
      '-e',
      program,
    ],
    { encoding: 'utf8', stdio: ['ignore', 'pipe', 'ignore'] },
  );
  return JSON.parse(text) as ReturnType<typeof start>;
}

test.skipIf(process.platform !== 'linux')(
  'a limit of open files below the wanted connections is logged at the start, with the way out',
  () => {
    const { lines, count } = start(400, 1_000);
    expect(count).toBe(300);
    expect(lines).toEqual([
      {
        openFilesMax: 400,
        connectionCountMax: 300,
        wantedConnectionCountMax: 1_000,
        neededOpenFilesMax: 1_334,
        message: expect.stringMatching(/INTAKE_CONNECTION_COUNT_MAX.*ulimit -n/),
      },
    ]);
    expect(start(400, 300)).toEqual({ lines: [], count: 300 });
  },
);
