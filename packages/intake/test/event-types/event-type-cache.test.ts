/**
 * Publishing is checked against the schemas that were read last.
 *
 * They are the schemas of the workspace alone.
 */
import type { EventTypesInForce } from '@sluice/domain/parsing/parse';
import { expect, test, vi } from 'vitest';
import { EventTypeCache } from '../../src/event-types/event-type-cache.ts';
import { EventTypeRefresh } from '../../src/event-types/refresh-event-types.ts';

const typed = (environmentId: number, name: string, version: number) => ({
  environmentId,
  name,
  version,
  schema: '{"type":"object"}' as string | null,
  isArchived: false,
});

const versionIn = (type: ReturnType<EventTypesInForce>) =>
  typeof type === 'object' ? type.version : type;

test('only workspaces whose types have changed are read again', async () => {
  const revisions = new Map([
    [1, '1'],
    [2, '1'],
  ]);
  let schemas = [typed(1, 'a', 1), typed(2, 'a', 1)];
  const asked: (readonly number[])[] = [];
  const refresh = new EventTypeRefresh({
    listRevisions: () =>
      Promise.resolve(
        [...revisions].map(([environmentId, revision]) => ({ environmentId, revision })),
      ),
    listSchemas(environmentIds) {
      asked.push(environmentIds);
      return Promise.resolve(schemas.filter((each) => environmentIds.includes(each.environmentId)));
    },
  });
  const { cache } = refresh;
  const read = () => refresh.read();
  await read();
  await read();
  schemas = [typed(1, 'a', 1), typed(2, 'b', 2)];
  revisions.set(2, '2');
  await read();
  expect(asked).toEqual([[1, 2], [2]]);
  expect(versionIn(cache.ofWorkspace(1)?.('a'))).toBe(1);
  expect(cache.ofWorkspace(2)?.('a')).toBeUndefined();
  expect(versionIn(cache.ofWorkspace(2)?.('b'))).toBe(2);
  schemas = [];
  revisions.set(1, '2');
  await read();
  expect(cache.ofWorkspace(1)).toBeUndefined();
});

test('an archived type is known as archived, with and without a schema', () => {
  const cache = new EventTypeCache();
  const archived = { isArchived: true };
  cache.put(
    [{ environmentId: 1, revision: '1' }],
    [
      { ...typed(1, 'a', 1), ...archived },
      { ...typed(1, 'b', 1), ...archived, schema: null },
    ],
  );
  expect(cache.ofWorkspace(1)?.('a')).toBe('archived');
  expect(cache.ofWorkspace(1)?.('b')).toBe('archived');
  expect(cache.ofWorkspace(1)?.('c')).toBeUndefined();
});

test('a schema that this version cannot read refuses no payload, and is read once', () => {
  const cache = new EventTypeCache();
  cache.put(
    [{ environmentId: 1, revision: '1' }],
    [{ ...typed(1, 'a', 1), schema: '{"later":1}' }],
  );
  expect(cache.ofWorkspace(1)?.('a')).toBeUndefined();
  const reads = vi.spyOn(JSON, 'parse');
  expect(cache.ofWorkspace(1)?.('a')).toBeUndefined();
  expect(reads).not.toHaveBeenCalled();
  reads.mockRestore();
});
