import { expect, test } from 'vitest';
import { readEvents } from '../src/tail.ts';

test('events are read whole, however the stream is cut; comments are passed over', async () => {
  const text =
    ': listening\n\nevent: received\nid: 1\ndata: {"name":"Ünïcode"}\n\nevent: dropped\ndata: {"count":3}\n\n';
  const bytes = new TextEncoder().encode(text);
  for (const size of [1, 2, 7, bytes.length]) {
    const body = new ReadableStream({
      start(controller) {
        for (let from = 0; from < bytes.length; from += size)
          controller.enqueue(bytes.slice(from, from + size));
        controller.close();
      },
    });
    const seen: string[][] = [];
    await readEvents(
      new Response(body),
      (event, data) => void seen.push([event, data]),
      new AbortController().signal,
    );
    expect(seen, `pieces of ${size}`).toEqual([
      ['received', '{"name":"Ünïcode"}'],
      ['dropped', '{"count":3}'],
    ]);
  }
});
