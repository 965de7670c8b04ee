/** Two of the runbooks, as an operator goes through them; `npm run runbooks` executes all. */
import { expect, test } from 'vitest';
import { executeRunbook } from '../../src/runbooks/execute-runbook.ts';

test.each(['redis-lost', 'replay-a-day'])(
  '%s: what the page says to type works, and shows what it says',
  { timeout: 240_000 },
  async (name) => {
    const path = process.env['PATH'] ?? '';
    await expect(executeRunbook(name, path, () => undefined)).resolves.toBeUndefined();
  },
);
