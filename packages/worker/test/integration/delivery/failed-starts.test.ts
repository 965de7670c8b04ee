/**
 * A worker that cannot start, as an operator sees it: exit code 1, and one last line of level `fatal` with the problem
 * and the next action. Tests that all services share are in `platform/test/process/begin-process.test.ts`, and in
 * `standalone/test/integration/late-database.test.ts` for a Postgres that refuses connections.
 */
import { fileURLToPath } from 'node:url';
import { DEMO, seedDemoWorkspace } from '@sluice/database/demo/seed-demo';
import { createTestDatabase } from '@sluice/database/testing/testing';
import type { ErrorCode } from '@sluice/domain/values/errors';
import { secretContext } from '@sluice/domain/delivery/webhook';
import { createEncryptedText } from '@sluice/platform/secrets/encrypted-text';
import { isOfAWait } from '@sluice/platform/testing/lines-of-a-wait';
import {
  runProgramUnderTest,
  TEST_SEALING_KEYS,
} from '@sluice/platform/testing/service-under-test';
import { testRedisUrl, uniquePrefix } from '@sluice/platform/testing/testing';
import { sql } from 'kysely';
import { expect, test } from 'vitest';

const MAIN = fileURLToPath(new URL('../../../src/main.ts', import.meta.url));
const TEST_TIMEOUT_MS = 120_000;

async function expectFailedStart(
  settings: Record<string, string>,
  code: ErrorCode,
  message: RegExp,
): Promise<void> {
  const ended = await runProgramUnderTest(MAIN, {
    REDIS_URL: testRedisUrl(),
    QUEUE_PREFIX: uniquePrefix(),
    SEALING_KEYS: TEST_SEALING_KEYS,
    ...settings,
  });
  expect(ended).toEqual({ code: 1, output: expect.stringMatching(/^({.*}\n)+$/) });
  const lines = ended.output
    .trimEnd()
    .split('\n')
    .map((text) => JSON.parse(text) as Record<string, unknown>)
    .filter((line) => !isOfAWait(line));
  expect(lines).toEqual([
    expect.objectContaining({ level: 60, code, msg: expect.stringMatching(message) }),
  ]);
  expect(lines[0]).not.toHaveProperty('error');
}

test(
  'a worker whose stop would cut its deliveries names the two settings that do not go together',
  () =>
    expectFailedStart(
      { DATABASE_URL: 'postgres://sluice@127.0.0.1:1/sluice', WEBHOOK_TIMEOUT_MS: '30000' },
      'CONFIG_INVALID',
      /WEBHOOK_TIMEOUT_MS: is 30000.*DRAIN_TIMEOUT_MS, which is 25000/,
    ),
  TEST_TIMEOUT_MS,
);

test(
  'a worker without the key that encrypted a secret names the setting to correct',
  async () => {
    const { database, url } = await createTestDatabase();
    await seedDemoWorkspace(database);
    const encrypted = createEncryptedText([{ id: 'lost', key: Buffer.alloc(32, 1) }]).encrypt(
      'a signing key',
      secretContext(DEMO.environmentId),
    );
    await sql`
      update environments set webhook_signing_key = ${encrypted} where environment_id = ${DEMO.environmentId}`.execute(
      database,
    );
    await expectFailedStart(
      { DATABASE_URL: url },
      'SECRET_UNREADABLE',
      /SEALING_KEYS.*docs\/operations\/runbooks\/sealing-key-lost\.md$/,
    );
  },
  TEST_TIMEOUT_MS,
);
