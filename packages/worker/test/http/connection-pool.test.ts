/** Which connection is used next, and for how long one lies idle, on a clock of the test's. */
import { afterEach, expect, test } from 'vitest';
import { ConnectionPool, type PooledConnection } from '../../src/http/connection-pool.ts';

interface Connection extends PooledConnection {
  readonly name: number;
}

let nowMs = 0;
let destroyed: number[] = [];
let opened = 0;
let pools: ConnectionPool<Connection>[] = [];
afterEach(() => {
  for (const pool of pools) pool.close();
  pools = [];
  nowMs = 0;
  opened = 0;
  destroyed = [];
});

function poolOf(idleMax = 10): ConnectionPool<Connection> {
  const pool = new ConnectionPool<Connection>(
    (origin) => {
      const name = ++opened;
      return { name, origin, idleUntilMs: 0, destroy: () => void destroyed.push(name) };
    },
    idleMax,
    () => nowMs,
  );
  pools.push(pool);
  return pool;
}

test('the latest used is used next', () => {
  const pool = poolOf();
  const connections = [pool.take('a'), pool.take('a'), pool.take('b')];
  for (const connection of connections) pool.release(connection, 1_000);
  expect([pool.take('a').name, pool.take('a').name, pool.take('a').name]).toEqual([2, 1, 4]);
  expect(destroyed).toEqual([]);
});

test('one that its server keeps no longer is not used again, whichever was given back last', () => {
  const pool = poolOf();
  const [long, short] = [pool.take('a'), pool.take('a')];
  pool.release(long, 5_000);
  pool.release(short, 1_000);
  nowMs = 1_000;
  expect(pool.take('a')).toBe(long);
  expect(destroyed).toEqual([short.name]);
  expect(pool.idleCount).toBe(0);
});

test('one that is given up is forgotten', () => {
  const pool = poolOf();
  const connection = pool.take('a');
  pool.release(connection, 1_000);
  pool.discard(connection);
  expect(pool.take('a')).not.toBe(connection);
  expect(pool.idleCount).toBe(0);
});

test('of too many idle ones the longest idle goes, whosever it is', () => {
  const pool = poolOf(2);
  const connections = ['a', 'b', 'a'].map((origin) => pool.take(origin));
  for (const connection of connections) pool.release(connection, 1_000);
  expect(destroyed).toEqual([1]);
  expect(pool.idleCount).toBe(2);
});
