/** Write keys of open streams: a change of the key ends its stream. */
import { expect, test, vi } from 'vitest';
import { openStream, writeKey } from '../support/simulated-streams.ts';

const event = (name: string) =>
  new Uint8Array(Buffer.from(`${JSON.stringify({ type: 'track', userId: 'ann', event: name })}\n`));

test.each([
  ['revoked', []],
  ['given to another workspace', [writeKey(2)]],
  ['to be tested first', [{ ...writeKey(1), testCredentialId: '1' }]],
])(
  'a stream whose key is %s ends, and only its acknowledged lines are taken',
  async (_, keysThen) => {
    const stream = openStream();
    stream.push(event('before'));
    await vi.waitFor(() => expect(stream.answers()).toEqual([{ line: 1 }]), 5_000);
    expect(stream.committedCount()).toBe(1);
    stream.keys.replace(keysThen);
    stream.push(event('after'));
    await vi.waitFor(
      () => expect(stream.answers().at(-1)).toMatchObject({ line: 1, end: 'unauthorized' }),
      5_000,
    );
    expect(stream.committedCount()).toBe(1);
    expect(stream.refused).toEqual([1]);
  },
);

test('a stream whose key is revoked while a group is under way ends after that is acknowledged', async () => {
  const stream = openStream();
  stream.push(event('under way'));
  await vi.waitFor(() => expect(stream.isPaused()).toBe(false), 5_000);
  stream.push(event('after'));
  stream.keys.replace([]);
  await vi.waitFor(() => expect(stream.answers().at(-1)?.end).toBe('unauthorized'), 5_000);
  expect(stream.answers().at(-1)?.line).toBe(stream.committedCount());
});

test('a stream goes on if other keys change and its own does not', async () => {
  const stream = openStream();
  stream.push(event('before'));
  await vi.waitFor(() => expect(stream.answers()).toEqual([{ line: 1 }]), 5_000);
  stream.keys.replace([{ ...writeKey(2), secretHash: Buffer.from('other') }, writeKey(1)]);
  stream.push(event('after'), true);
  await vi.waitFor(
    () => expect(stream.answers().at(-1)).toMatchObject({ line: 2, end: 'complete' }),
    5_000,
  );
});
