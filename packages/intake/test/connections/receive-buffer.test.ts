/** The receive buffer of the kernel, in network namespaces of a test. */
import { execFileSync, spawnSync } from 'node:child_process';
import { join } from 'node:path';
import { expect, test } from 'vitest';

const MODULE = join(import.meta.dirname, '../../src/connections/receive-buffer.ts');
const PROGRAM = `
  import { isReceiveBufferSmall } from ${JSON.stringify(MODULE)};
  console.log(isReceiveBufferSmall());`;

/** As a process with this `net.ipv4.tcp_rmem` finds it. */
const found = (setting: string): string =>
  execFileSync(
    'unshare',
    [
      '-rn',
      'sh',
      '-c',
      `echo '${setting}' > /proc/sys/net/ipv4/tcp_rmem && exec "$@"`,
      'sh',
      process.execPath,
      '--input-type=module',
      '-e',
      PROGRAM,
    ],
    { encoding: 'utf8', stdio: ['ignore', 'pipe', 'ignore'] },
  ).trim();

const canUnshare = spawnSync('unshare', ['-rn', 'true']).status === 0;

test.skipIf(!canUnshare)(
  'a receive buffer of at most 512 KiB bounds each turn, and the default of Linux does not',
  () => {
    expect(found('4096 131072 524288')).toBe('true');
    // Clients in Go and Java were cut with it.
    expect(found('4096 131072 1048576')).toBe('false');
    expect(found('4096 131072 6291456')).toBe('false');
  },
);
