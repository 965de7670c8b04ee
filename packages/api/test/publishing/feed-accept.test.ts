/** Media types that a reader of a feed accepts. */
import { expect, test } from 'vitest';
import { asksForStream } from '../../src/publishing/feed-accept.ts';

test.each([
  ['text/event-stream', true],
  ['Text/Event-Stream', true],
  ['application/json;q=0.5, text/event-stream ; q=1', true],
  ['text/event-stream;q=0.1', true],
  ['text/event-stream;q=0', false],
  ['application/json, text/event-stream; q=0.000', false],
  ['application/x-text/event-streams', false],
  ['*/*', false],
  ['', false],
  [undefined, false],
] as const)('%s asks for server-sent events: %s', (accept, isStream) => {
  expect(asksForStream(accept)).toBe(isStream);
});
