/** Counts and log of the connections that intake cuts. */
import { createLogger } from '@sluice/platform/process/logger';
import { expect, onTestFinished, test, vi } from 'vitest';
import { CutConnections, type CutHandle } from '../../src/connections/cut-connections.ts';
import { openCuts } from '../../src/connections/cut-log.ts';

const handleOf = (address: string) => {
  const handle = {
    closedCount: 0,
    getRemoteAddressAsText(): ArrayBuffer {
      // As uWebSockets.js has them: touched after its end, a handle is memory of something else.
      if (handle.closedCount > 0) throw new Error('read after its end');
      return Uint8Array.from(Buffer.from(address)).buffer;
    },
    close: () => void handle.closedCount++,
  };
  return handle satisfies CutHandle;
};

test('a flood of cuts is one summary with exact counts, and the last one can be found', () => {
  const cuts = new CutConnections();
  const handles = Array.from({ length: 1_000 }, () => handleOf('192.0.2.7'));
  for (const handle of handles) cuts.cut(handle, 'too_many_chunks', 5);
  cuts.cut(handleOf('2001:0db8:0000:0001:0000:0000:0000:0009'), 'unread_answer');
  expect(new Set(handles.map(({ closedCount }) => closedCount))).toEqual(new Set([1]));
  expect(Object.fromEntries(cuts.counts)).toEqual({
    too_many_connections: 0,
    too_many_chunks: 1_000,
    too_many_bytes: 0,
    silent: 0,
    unread_answer: 1,
  });
  expect(cuts.takeSummary()).toEqual({
    count: 1_001,
    countsByReason: { too_many_chunks: 1_000, unread_answer: 1 },
    last: { reason: 'unread_answer', address: '2001:db8:0:1::/64' },
  });
  expect(cuts.takeSummary()).toBeUndefined();
  cuts.cut(handleOf('0000:0000:0000:0000:0000:ffff:c000:0207'), 'too_many_bytes', 5);
  expect(cuts.takeSummary()?.last).toEqual({
    reason: 'too_many_bytes',
    address: '192.0.2.7',
    environmentId: 5,
  });
});

// A browser opens connections in advance, and sends no request over some of them.
test('a silent connection is counted, and is no line of the log', () => {
  const cuts = new CutConnections();
  cuts.cut(handleOf('192.0.2.7'), 'silent');
  expect(cuts.counts.get('silent')).toBe(1);
  expect(cuts.takeSummary()).toBeUndefined();
});

test('the log has one line for all cuts of an interval', async () => {
  const logger = createLogger('test', 'silent');
  const warn = vi.spyOn(logger, 'warn');
  const { cuts, log } = openCuts(logger, { defer: (_, stop) => onTestFinished(stop) });
  for (let n = 0; n < 50; n++) cuts.cut(handleOf('192.0.2.7'), 'too_many_chunks');
  log.wake();
  await vi.waitFor(() => expect(warn).toHaveBeenCalled(), 30_000);
  expect(warn.mock.calls).toEqual([
    [
      {
        cutCount: 50,
        countsByReason: { too_many_chunks: 50 },
        reason: 'too_many_chunks',
        address: '192.0.2.7',
      },
      expect.stringContaining('intake cut connections without an answer'),
    ],
  ]);
});
