/** The next connection and its idle time, by the test's clock. */
import { afterEach, expect, test, vi } from 'vitest';
import {
  ConnectionPool,
  type PooledConnection,
  type Route,
} from '../../src/http/connection-pool.ts';

interface Connection extends PooledConnection {
  readonly name: number;
}

let nowMs = 0;
let destroyed: number[] = [];
let opened = 0;
let pools: ConnectionPool<Route, Connection>[] = [];
afterEach(() => {
  for (const pool of pools) pool.close();
  pools = [];
  nowMs = 0;
  opened = 0;
  destroyed = [];
});

function poolOf(idleWeightMax = 10): ConnectionPool<Route, Connection> {
  const pool = new ConnectionPool<Route, Connection>(
    (route) => {
      const name = ++opened;
      const weight = route.key === 'tls' ? 4 : 1;
      return { name, route, weight, idleUntilMs: 0, destroy: () => void destroyed.push(name) };
    },
    idleWeightMax,
    () => nowMs,
  );
  pools.push(pool);
  return pool;
}

test('the latest used is used next', () => {
  const pool = poolOf();
  const connections = [pool.take({ key: 'a' }), pool.take({ key: 'a' }), pool.take({ key: 'b' })];
  for (const connection of connections) pool.release(connection, 1_000);
  expect([
    pool.take({ key: 'a' }).name,
    pool.take({ key: 'a' }).name,
    pool.take({ key: 'a' }).name,
  ]).toEqual([2, 1, 4]);
  expect(destroyed).toEqual([]);
});

test('a connection that its server no longer keeps is not used again, even if it was given back last', () => {
  const pool = poolOf();
  const [long, short] = [pool.take({ key: 'a' }), pool.take({ key: 'a' })];
  pool.release(long, 5_000);
  pool.release(short, 1_000);
  nowMs = 1_000;
  expect(pool.take({ key: 'a' })).toBe(long);
  expect(destroyed).toEqual([short.name]);
  expect(pool.idleCount).toBe(0);
});

test('one that is given up is forgotten', () => {
  const pool = poolOf();
  const connection = pool.take({ key: 'a' });
  pool.release(connection, 1_000);
  pool.discard(connection);
  expect(pool.take({ key: 'a' })).not.toBe(connection);
  expect(pool.idleCount).toBe(0);
});

test('of too many idle ones the longest idle goes, whosever it is', () => {
  const pool = poolOf(2);
  const connections = ['a', 'b', 'a'].map((key) => pool.take({ key }));
  for (const connection of connections) pool.release(connection, 1_000);
  expect(destroyed).toEqual([1]);
  expect(pool.idleCount).toBe(2);
});

test('an idle connection with TLS takes the places of four without', () => {
  const pool = poolOf(5);
  const connections = ['a', 'b', 'tls', 'c', 'd'].map((key) => pool.take({ key }));
  for (const connection of connections.slice(0, 3)) pool.release(connection, 1_000);
  expect([destroyed, pool.idleCount]).toEqual([[1], 2]);
  // The weight of one in use does not count.
  expect(pool.take({ key: 'tls' }).name).toBe(3);
  for (const connection of connections.slice(3)) pool.release(connection, 1_000);
  expect(destroyed).toEqual([1]);
  pool.release(connections[2] as Connection, 1_000);
  expect(destroyed).toEqual([1, 2, 4]);
});

test('thousands that ended together are closed in parts', () => {
  vi.useFakeTimers();
  const pool = poolOf(5_000);
  const connections = Array.from({ length: 2_500 }, () => pool.take({ key: 'a' }));
  for (const connection of connections) pool.release(connection, 1_000);
  nowMs = 1_000;
  const closedCounts = [1, 2, 3].map(() => {
    vi.advanceTimersByTime(1_000);
    return destroyed.length;
  });
  expect(closedCounts).toEqual([1_024, 2_048, 2_500]);
  vi.useRealTimers();
});
