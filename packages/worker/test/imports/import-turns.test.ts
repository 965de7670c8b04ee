/** The order in which workspaces had turns. */
import { describe, expect, test } from 'vitest';
import { ImportTurns } from '../../src/imports/import-turns.ts';

test('the workspace that had the latest turn is last, and is listed once', () => {
  const turns = new ImportTurns();
  for (const environmentId of [1, 2, 3, 1]) turns.took(environmentId);
  expect(turns.servedEnvironmentIds(0)).toEqual([2, 3, 1]);
});

test('workspaces beyond a thousand are forgotten, the first one first', () => {
  const turns = new ImportTurns();
  for (let environmentId = 1; environmentId <= 1_001; environmentId++) turns.took(environmentId);
  expect(turns.servedEnvironmentIds(0)).toHaveLength(1_000);
  expect(turns.servedEnvironmentIds(0)[0]).toBe(2);
});

describe('a workspace whose import waits for storage', () => {
  test('is behind the others meanwhile, and then has its former place', () => {
    const turns = new ImportTurns();
    for (const environmentId of [1, 2, 3]) turns.took(environmentId);
    turns.took(1).waitsUntil(60_000);
    turns.took(4).waitsUntil(60_000);
    expect(turns.servedEnvironmentIds(59_999)).toEqual([2, 3, 1, 4]);
    expect(turns.servedEnvironmentIds(60_000)).toEqual([1, 2, 3]);
  });

  test('keeps its former place while its other imports wait too, and loses it once one of them runs', () => {
    const turns = new ImportTurns();
    for (const environmentId of [1, 2]) turns.took(environmentId);
    const first = turns.took(1);
    first.waitsUntil(60_000);
    turns.took(1).waitsUntil(61_000);
    expect(turns.servedEnvironmentIds(61_000)).toEqual([1, 2]);
    turns.took(1);
    first.waitsUntil(60_000);
    expect(turns.servedEnvironmentIds(61_000)).toEqual([2, 1]);
  });
});
