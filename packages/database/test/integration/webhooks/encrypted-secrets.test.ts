/** The search for secrets of another key: it finds all of them, and does not read the webhooks. */
import type { Database } from '@sluice/database/connection/connection';
import { createTestDatabase } from '@sluice/database/testing/testing';
import { listSecretsWithout } from '@sluice/database/webhooks/encrypted-secrets';
import { sql } from 'kysely';
import { beforeEach, expect, test } from 'vitest';
import { explain, rowsRead } from '../support/explain.ts';

const PREFIX = 'sealed:k2:';
const LIMIT = 500;

let database: Database;
beforeEach(async () => {
  ({ database } = await createTestDatabase());
  await sql`
    insert into webhooks (environment_id, webhook_id, name, endpoint, events, signing_key)
    overriding system value
    select 7, n, 'n', 'https://example.com/', '{event}', ${PREFIX} || md5(n::text)
      from generate_series(1, 20000) n`.execute(database);
});

const find = async () => {
  const found = await listSecretsWithout(database, PREFIX, LIMIT);
  return found.map(({ place, webhookId, stored }) => ({ place, webhookId, stored }));
};

test.each(['analyzed', 'never analyzed'])(
  'while all of 20,000 webhooks (%s) have the key, the search reads the index alone',
  async (state) => {
    await (state === 'analyzed' ? sql`vacuum analyze` : sql`vacuum`).execute(database);
    const plan = await explain(database, (db) => listSecretsWithout(db, PREFIX, LIMIT));
    expect(rowsRead(plan)).toBeLessThan(10);
    expect(await find()).toEqual([]);
  },
);

test.each([
  ['signing_key', 'webhook'],
  ['next_signing_key', 'next'],
  ['custom_headers', 'headers'],
  ['endpoint_credentials', 'credentials'],
])(
  'a %s is found under an earlier key, under a later one, and as plain text',
  async (column, place) => {
    const stored = [
      'sealed:k1:abc',
      'sealed:k3:abc',
      'sealed:k:abc',
      'sealed:k22:abc',
      '{"Authorization":"a:b"}',
      'whsec_abc',
      '',
      'x'.repeat(5_000),
    ];
    const rotates = column === 'next_signing_key';
    for (const [index, text] of stored.entries())
      await sql`
      update webhooks set ${sql.ref(column)} = ${text}
        ${rotates ? sql`, next_signing_key_made_at = now(), next_signs_from = now()` : sql``}
       where webhook_id = ${index + 1}`.execute(database);
    const found = await find();
    expect(found.toSorted((one, other) => one.webhookId - other.webhookId)).toEqual(
      stored.map((text, index) => ({ place, webhookId: index + 1, stored: text })),
    );
    await sql`update webhooks set deleted_at = now()`.execute(database);
    expect(await find()).toEqual([]);
  },
);
