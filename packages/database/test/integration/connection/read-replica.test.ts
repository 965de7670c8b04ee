/** Positions of two servers in the log, before and after a promotion. */
import { chmod, mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { sql } from 'kysely';
import { expect, onTestFinished, test, vi } from 'vitest';
import { createDatabase } from '../../../src/connection/connection.ts';
import { readPrimaryPosition, readReplicaPosition } from '../../../src/connection/read-replica.ts';
import { startReplicatedPostgres } from '../../../src/testing/replicated-postgres.ts';

/** A server that stands still for the two seconds of a look answers the next one. */
const WAIT = { timeout: 60_000, interval: 50 };

test(
  'a promoted replica writes another timeline of the log than the server that it followed',
  { timeout: 180_000 },
  async () => {
    const directory = await mkdtemp(join(tmpdir(), 'sluice-test-timeline-'));
    onTestFinished(() => rm(directory, { recursive: true, force: true }));
    // The account that runs Postgres for root must pass through.
    await chmod(directory, 0o711);
    const servers = await startReplicatedPostgres(directory, async () => {});
    onTestFinished(() => servers.remove());
    const open = (url: string) => {
      const opened = createDatabase({
        url,
        poolMax: 1,
        applicationName: 'test',
        onError: () => {},
      });
      onTestFinished(() => opened.destroy());
      return opened;
    };
    const first = open(servers.primary.url('postgres'));
    const second = open(servers.replica.url('postgres'));

    const before = await vi.waitFor(() => readPrimaryPosition(first), WAIT);
    const followed = await vi.waitFor(() => readReplicaPosition(second), WAIT);
    expect(followed).toMatchObject({
      clusterId: before.clusterId,
      databaseId: before.databaseId,
      timeline: before.timeline,
    });

    // The default wait for the promotion is a minute.
    await sql`select pg_promote()`.execute(second);
    await vi.waitFor(
      async () => expect((await readPrimaryPosition(second)).timeline).toBe(before.timeline + 1),
      WAIT,
    );
    const left = await vi.waitFor(() => readPrimaryPosition(first), WAIT);
    expect(left.timeline).toBe(before.timeline);
  },
);
