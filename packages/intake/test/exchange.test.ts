/** What compressed bodies may hold of memory, before anybody knows whose they are. */
import { gzipSync } from 'node:zlib';
import { describe, expect, test, vi } from 'vitest';
import { routes, type Call } from '../src/calls.ts';
import { Exchange, type Accept, type ResponseWriter, type ServerState } from '../src/exchange.ts';
import { head } from '../src/request-head.ts';

const MEBIBYTE = 1_048_576;
const batch = routes.find(({ pattern }) => pattern === '/v1/batch')?.call as Call;

/** A body of 1 KB that inflates to just under the limit of a batch. */
const BOMB = gzipSync(Buffer.alloc(batch.sizeBytesMax - 2, 0x20));

const stateWith = (collectedSizeBytesMax: number): ServerState => ({
  isStopping: false,
  inFlightCount: 0,
  receivedCount: 0,
  refusedCounts: new Map(),
  collectedSizeBytes: 0,
  collectedSizeBytesMax,
  inflations: { runningCount: 0, waiting: new Set() },
  streams: new Set(),
});

/** A caller that sends `body` in one piece; `taken` is called when its call is submitted. */
function send(state: ServerState, body: Uint8Array, taken: () => void) {
  const told: { status: string | undefined; abort: () => void } = {
    status: undefined,
    abort: () => undefined,
  };
  let receive: (chunk: ArrayBuffer, isLast: boolean) => void = () => undefined;
  const res: ResponseWriter = {
    onAborted: (handler) => (told.abort = handler),
    onData: (handler) => (receive = handler),
    cork: (write) => write(),
    writeStatus: (status) => (told.status = status),
    writeHeader: () => undefined,
    end: () => (told.status ??= '200 OK'),
  };
  head.clear();
  head.contentEncoding = 'gzip';
  state.inFlightCount++;
  const accept: Accept = (_, answer) => {
    taken();
    answer({ outcome: 'accepted' });
  };
  new Exchange(res, batch, [], state, accept, undefined).receive();
  receive(new Uint8Array(body).buffer, true);
  return told;
}

describe('compressed bodies', () => {
  test('that come at once are inflated a few at a time, in turn, and all are taken', async () => {
    const state = stateWith(4 * MEBIBYTE);
    const before = process.memoryUsage().arrayBuffers;
    let heldSizeBytes: number | undefined;
    const taken: number[] = [];
    const callers = Array.from({ length: 60 }, (_, n) =>
      send(state, BOMB, () => {
        heldSizeBytes ??= process.memoryUsage().arrayBuffers - before;
        taken.push(n);
      }),
    );
    expect(state.collectedSizeBytes).toBe(60 * BOMB.length);
    await vi.waitFor(() => expect(taken).toHaveLength(60), 10_000);
    expect(heldSizeBytes).toBeLessThan(20 * MEBIBYTE);
    // Four at a time: none is taken before one that came more than three before it.
    for (const [place, n] of taken.entries()) expect(Math.abs(place - n)).toBeLessThan(4);
    expect(new Set(callers.map(({ status }) => status))).toEqual(new Set(['200 OK']));
    expect(state).toMatchObject({ collectedSizeBytes: 0, inFlightCount: 0 });
  });

  test('that wait are counted, and refused with 503 beyond the bound', async () => {
    const state = stateWith(10 * BOMB.length);
    let takenCount = 0;
    const callers = Array.from({ length: 15 }, () => send(state, BOMB, () => takenCount++));
    expect(callers.filter(({ status }) => status?.startsWith('503'))).toHaveLength(5);
    await vi.waitFor(() => expect(takenCount).toBe(10), 10_000);
    expect(state).toMatchObject({ collectedSizeBytes: 0, inFlightCount: 0 });
    const late = send(state, BOMB, () => takenCount++);
    await vi.waitFor(() => expect(late.status).toBe('200 OK'), 10_000);
  });

  test('whose senders hang up are let go once: those that wait at once, those under way at their end', async () => {
    const state = stateWith(4 * MEBIBYTE);
    const callers = Array.from({ length: 20 }, () => send(state, BOMB, () => undefined));
    for (const caller of callers) caller.abort();
    expect(state.inFlightCount).toBe(0);
    expect(state.collectedSizeBytes).toBeLessThanOrEqual(4 * BOMB.length);
    let isTaken = false;
    send(state, BOMB, () => (isTaken = true));
    await vi.waitFor(() => expect(isTaken).toBe(true), 10_000);
    await vi.waitFor(() => expect(state.collectedSizeBytes).toBe(0), 10_000);
    expect(state.inflations).toMatchObject({ runningCount: 0 });
  });

  test('that cannot be inflated, or not within the limit, give back their turn', async () => {
    const state = stateWith(4 * MEBIBYTE);
    let takenCount = 0;
    const tooLarge = gzipSync(Buffer.alloc(batch.sizeBytesMax + 1, 0x20));
    for (let n = 0; n < 20; n++) {
      send(state, n % 2 === 0 ? tooLarge : Buffer.from('not gzip'), () => takenCount++);
    }
    await vi.waitFor(() => expect(takenCount).toBe(20), 10_000);
    expect(state).toMatchObject({ collectedSizeBytes: 0, inflations: { runningCount: 0 } });
  });
});
