/** Failures of a node of Citus, as its coordinator reports them. */
import { expect, test } from 'vitest';
import { isNodeAway } from '../../src/connection/statement-failure.ts';

const failed = (code: string, where?: string) =>
  Object.assign(new Error('failed'), { code, where });
const BY_NODE = 'while executing command on two.internal:5432';

test.each([
  ['it cannot be reached', failed('08006')],
  ['it takes no writes', failed('25006', BY_NODE)],
  ['its disk is full', failed('53100', `SQL statement "insert"\n${BY_NODE}`)],
  ['it has no connection left', failed('53300', BY_NODE)],
  ['it stops', failed('57P01', BY_NODE)],
  ['it starts', failed('57P03', BY_NODE)],
  ['it cannot read its disk', failed('58030', BY_NODE)],
])('a node is away if %s', (_, error) => {
  expect(isNodeAway(error)).toBe(true);
});

test.each([
  ['the coordinator takes no writes', failed('25006')],
  ['the disk of the coordinator is full', failed('53100', 'SQL statement "insert"')],
  ['the coordinator stops', failed('57P01')],
  ['a proxy reports its own fault', failed('08P01')],
  ['a node refuses a statement', failed('55000', BY_NODE)],
  ['a node refuses a value', failed('22001', BY_NODE)],
  ['a node ended a deadlock', failed('40P01', BY_NODE)],
  ['the connection to the coordinator is lost', new Error('Connection terminated unexpectedly')],
])('no node is away if %s', (_, error) => {
  expect(isNodeAway(error)).toBe(false);
});
