import { expect, test } from 'vitest';
import { createLifecycle } from '../../src/process/lifecycle.ts';
import { createLogger } from '../../src/process/logger.ts';

test('resources close once in reverse order, even after one fails to close, and each stop waits for the end', async () => {
  const lifecycle = createLifecycle(createLogger('test', 'silent'));
  const closed: string[] = [];
  const closing = Promise.withResolvers<void>();
  lifecycle.defer('first', () => void closed.push('first'));
  lifecycle.defer('broken', () => Promise.reject(new Error('broken')));
  lifecycle.defer('last', async () => {
    await closing.promise;
    closed.push('last');
  });
  const stops = [lifecycle.stop(), lifecycle.stop()].map((stop) => stop.then(() => [...closed]));
  closing.resolve();
  expect(await Promise.all(stops)).toEqual([
    ['last', 'first'],
    ['last', 'first'],
  ]);
});
