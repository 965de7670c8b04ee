/**
 * Two of the runbooks, as an operator goes through them; `npm run runbooks` executes all ten. Each has a world of its own
 * and waits most of its time for processes, so the two run side by side.
 */
import { expect, test } from 'vitest';
import { executeRunbook } from '../../src/runbooks/execute-runbook.ts';

test.concurrent(
  'redis-lost: the commands of the page work and show the described output',
  {
    timeout: 600_000,
  },
  async () => {
    const path = process.env['PATH'] ?? '';
    await expect(executeRunbook('redis-lost', path, () => undefined)).resolves.toBeUndefined();
  },
);

test.concurrent(
  'upgrade-or-restart: each line of the page works, with `npm run roll`, and no call of intake or the API is refused',
  {
    timeout: 600_000,
  },
  async () => {
    const path = process.env['PATH'] ?? '';
    // Not every machine of a developer has nginx: a balancer of TCP takes its place, and the steps through nginx are
    // left out.
    const page = executeRunbook('upgrade-or-restart', path, () => undefined, { proxy: undefined });
    await expect(page).resolves.toBeUndefined();
  },
);
