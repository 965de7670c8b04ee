/** Numbers of people and objects. */
import { beforeAll, expect, it } from 'vitest';
import type { Database } from '../../../src/connection/connection.ts';
import { NumberStock } from '../../../src/people/numbers.ts';
import { createTestDatabase } from '../../../src/testing/testing.ts';

let database: Database;
beforeAll(async () => {
  ({ database } = await createTestDatabase());
});

it('are never given twice, to any process and at any time', async () => {
  const stocks = [new NumberStock(), new NumberStock(), new NumberStock()];
  const given: number[] = [];
  const take = async (stock: NumberStock, count: number): Promise<void> => {
    await stock.reserve(database, count);
    for (let index = 0; index < count; index++) given.push(stock.take());
  };
  await Promise.all(
    stocks.flatMap((stock) => [
      take(stock, 1),
      take(stock, 2_500),
      take(stock, 700),
      take(stock, 0),
    ]),
  );
  expect(given).toHaveLength(3 * 3_201);
  expect(new Set(given).size).toBe(given.length);
  // The first block may come last, and stay in stock.
  expect(Math.min(...given)).toBeGreaterThanOrEqual(1);
});

it('are not made up: taking more than was reserved is a bug', () => {
  expect(() => new NumberStock().take()).toThrow('more numbers');
});
