/** The order in which workspaces had turns. */
import { expect, test } from 'vitest';
import { ImportTurns } from '../../src/imports/import-turns.ts';

test('the workspace that had the latest turn is last, and is listed once', () => {
  const turns = new ImportTurns();
  for (const environmentId of [1, 2, 3, 1]) turns.took(environmentId);
  expect(turns.servedEnvironmentIds).toEqual([2, 3, 1]);
});

test('workspaces beyond a thousand are forgotten, the first one first', () => {
  const turns = new ImportTurns();
  for (let environmentId = 1; environmentId <= 1_001; environmentId++) turns.took(environmentId);
  expect(turns.servedEnvironmentIds).toHaveLength(1_000);
  expect(turns.servedEnvironmentIds[0]).toBe(2);
});
