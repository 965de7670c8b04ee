/** One of the runbooks, as an operator goes through it; `npm run runbooks` executes all ten. */
import { expect, test } from 'vitest';
import { executeRunbook } from '../../src/runbooks/execute-runbook.ts';

test(
  'redis-lost: what the page says to type works, and shows what it says',
  {
    timeout: 240_000,
  },
  async () => {
    const path = process.env['PATH'] ?? '';
    await expect(executeRunbook('redis-lost', path, () => undefined)).resolves.toBeUndefined();
  },
);
