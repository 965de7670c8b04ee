/** Bytes of one more item: the slope between two sizes. It also reads those bytes. */
import type { Database } from '@sluice/database/connection/connection';
import type { Redis } from 'ioredis';
import { sql } from 'kysely';

/** Prints it too. @param sizes two, the smaller first. @param bytesAt fills up to so many, from 0, and reads. */
export async function bytesOfOneMore(
  name: string,
  sizes: readonly number[],
  bytesAt: (size: number) => Promise<number>,
): Promise<number> {
  const [small, large] = sizes;
  if (sizes.length !== 2 || !(Number(small) < Number(large)))
    throw new Error(`two sizes are wanted, the smaller first: ${sizes.join()}`);
  const least = await bytesAt(small as number);
  const most = await bytesAt(large as number);
  const each = (most - least) / ((large as number) - (small as number));
  console.log(`${name.padEnd(52)} ${each.toFixed(0).padStart(6)} B`);
  return each;
}

/** All that Redis has allocated. A constant part cancels out in the slope. */
export async function redisBytes(redis: Redis): Promise<number> {
  return Number(/used_memory:(\d+)/.exec(await redis.info('memory'))?.[1]);
}

/** Size of the tables whose names begin so, with indexes and TOAST. */
export async function tableBytes(
  database: Database,
  schema: string,
  namesBegin: readonly string[],
): Promise<number> {
  const { rows } = await sql<{ bytes: string }>`
    select coalesce(sum(pg_total_relation_size(c.oid)), 0) as bytes
      from pg_class c
     where c.relnamespace = ${schema}::regnamespace and c.relkind = 'r'
       and exists (select from unnest(${namesBegin}::text[]) b where starts_with(c.relname::text, b))`.execute(
    database,
  );
  return Number(rows[0]?.bytes);
}
