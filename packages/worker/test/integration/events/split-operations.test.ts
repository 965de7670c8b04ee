/**
 * The halves of an operation, applied by two workers at once.
 *
 * The operation is about an object and a person of another shard.
 */
import type { Operation } from '@sluice/domain/operations/operation';
import { splitOperation } from '@sluice/domain/testing/split-operation';
import {
  deleteObject,
  identify,
  identifyObject,
  relate,
  remove,
} from '@sluice/domain/testing/sample-operations';
import { expect, test } from 'vitest';
import { useWorkspace } from '../support/open-commit-batch.ts';

const { world, environmentId, run, runAndKeepOpen, untilWaiting } = useWorkspace();

const group = (objectId: string): Operation =>
  identifyObject(
    objectId,
    {},
    { relationships: [{ person: identify('id:u1').person, attributes: {} }] },
  );

/** The object's half and the person's. */
function halvesOf(objectId: string): [Operation, Operation] {
  const [object, person] = splitOperation(group(objectId), 256);
  if (!object || !person) throw new Error(`${objectId} and u1 share a shard: name another object`);
  return [object, person];
}

const countOf = async (table: 'people' | 'objects' | 'relationships') =>
  (await world().rowsOf(table, environmentId())).length;

test.each([
  ['the object', (halves: [Operation, Operation]) => halves],
  ['the person', ([object, person]: [Operation, Operation]) => [person, object] as const],
])(
  'a new person, a new object and their relationship are made once if the half of %s is first',
  async (_, inTurn) => {
    const [first, second] = inTurn(halvesOf('o1'));
    const running = await runAndKeepOpen(first);
    const waiting = run(second);
    await untilWaiting(2);
    await running.end();
    await waiting;
    expect([
      await countOf('people'),
      await countOf('objects'),
      await countOf('relationships'),
    ]).toEqual([1, 1, 1]);
  },
);

test('a person who was deleted since is not made anew by the half of the object', async () => {
  const [object, person] = halvesOf('o1');
  await run(person);
  await run(remove('id:u1'));
  await run(object);
  expect([
    await countOf('people'),
    await countOf('objects'),
    await countOf('relationships'),
  ]).toEqual([0, 1, 0]);
});

test('an object that was deleted since is not made anew by a call about its person', async () => {
  const person = splitOperation(relate('id:u1', 'o1'), 256).filter(
    ({ type }) => type === 'person.relationships',
  );
  const object = splitOperation(relate('id:u1', 'o1'), 256).filter(
    ({ type }) => type === 'object.relationships',
  );
  await run(...object);
  await run(deleteObject('o1'));
  await run(...person);
  expect([
    await countOf('people'),
    await countOf('objects'),
    await countOf('relationships'),
  ]).toEqual([1, 0, 0]);
});
