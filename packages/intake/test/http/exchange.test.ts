/** Memory that bodies may use before intake knows their workspace. */
import { setImmediate as iteration } from 'node:timers/promises';
import { gzipSync } from 'node:zlib';
import { describe, expect, onTestFinished, test, vi } from 'vitest';
import { routes, type Call } from '../../src/calls/calls.ts';
import { Exchange, type Accept } from '../../src/http/exchange.ts';
import type { ServerState } from '../../src/http/server-state.ts';
import type { ResponseWriter } from '../../src/http/write-head.ts';
import { FairQueue } from '../../src/http/fair-queue.ts';
import { RequestTurns } from '../../src/http/answer.ts';
import { BodyReads } from '../../src/body/body-reads.ts';
import { RepeatedKeyLooks } from '../../src/calls/repeated-key.ts';
import { DemoGate } from '../../src/auth/demo-gate.ts';
import { Turns } from '../../src/http/turns.ts';
import type { Body } from '../../src/calls/read-body.ts';
import { Head } from '../../src/http/request-head.ts';
import { capacityOfOne } from '../support/capacity-of-one.ts';

const MEBIBYTE = 1_048_576;
const batch = routes.find(({ pattern }) => pattern === '/v1/batch')?.call as Call;

/** A body of 4 KB that inflates to just under the limit of a batch. */
const BOMB = gzipSync(Buffer.alloc(batch.sizeBytesMax - 2, 0x20));

const stateWith = (collectedSizeBytesMax: number): ServerState => ({
  isStopping: false,
  inFlightCount: 0,
  receivedCount: 0,
  heldCount: 0,
  refusedCounts: new Map(),
  collected: capacityOfOne(collectedSizeBytesMax),
  inflations: { runningCount: 0, waiting: new FairQueue() },
  streams: new Set(),
  turns: new Turns(() => performance.now()),
  demoGate: new DemoGate([]),
  repeatedKeys: new RepeatedKeyLooks(() => performance.now()),
  bodyReads: new BodyReads(() => performance.now()),
  requestTurns: new RequestTurns(),
  ownerOf: (authorization) => Number(authorization),
});

/** A caller that sends `body` in one piece; `taken` is called when its call is submitted. */
function send(state: ServerState, body: Uint8Array, taken: (body: Body) => void) {
  const caller = begin(state, 'gzip', taken);
  const { buffer } = new Uint8Array(body);
  caller.receive(buffer, true);
  // uWebSockets.js reads the next body into it.
  new Uint8Array(buffer).fill(0);
  return caller;
}

/** A caller whose body comes as `receive` is called; `taken` gets the submitted body. */
function begin(
  state: ServerState,
  encoding: string,
  taken: (body: Body) => void,
  authorization = '1',
  transferEncodingCount = 0,
) {
  const told: {
    status: string | undefined;
    abort: () => void;
    isPaused: boolean;
    isCut: boolean;
  } = {
    status: undefined,
    isCut: false,
    abort: () => undefined,
    isPaused: false,
  };
  let receive: (chunk: ArrayBuffer, isLast: boolean) => void = () => undefined;
  const res: ResponseWriter = {
    onAborted: (handler) => (told.abort = handler),
    onData: (handler) => (receive = handler),
    cork: (write) => write(),
    writeStatus: (status) => (told.status = status),
    writeHeader: () => undefined,
    end: () => (told.status ??= '200 OK'),
    close() {
      told.isCut = true;
      told.abort();
    },
    pause: () => void (told.isPaused = true),
    resume: () => void (told.isPaused = false),
  };
  const head = new Head();
  head.contentEncoding = encoding;
  head.authorization = authorization;
  head.transferEncodingCount = transferEncodingCount;
  state.inFlightCount++;
  const accept: Accept = ({ body }, answer) => {
    taken(body);
    answer({ outcome: 'accepted' });
  };
  new Exchange(res, head, batch, [], state, accept, undefined).receive();
  return Object.assign(told, { receive });
}

describe('bodies that come in parts', () => {
  const part = (sizeBytes: number) => new Uint8Array(sizeBytes).fill(0x20).buffer;

  test('are taken up to their limit, and are too large a byte beyond', async () => {
    const outcomeOf = async (sizeBytes: number): Promise<string | undefined> => {
      let outcome: string | undefined;
      const { receive } = begin(stateWith(batch.sizeBytesMax), '', (body) => ({ outcome } = body));
      receive(part(sizeBytes - 10), false);
      receive(part(10), true);
      await vi.waitFor(() => expect(outcome).toBeDefined(), 5_000);
      return outcome;
    };
    expect(await outcomeOf(batch.sizeBytesMax)).toBe('invalid-json');
    expect(await outcomeOf(batch.sizeBytesMax + 1)).toBe('too-large');
  });

  test('are held within the bound, and let go when their senders hang up', () => {
    const state = stateWith(2_000);
    const callers = [1_000, 1_000, 1].map((sizeBytes) => {
      const caller = begin(state, '', () => undefined);
      caller.receive(part(sizeBytes), false);
      return caller;
    });
    expect(callers.map(({ status }) => status?.slice(0, 3))).toEqual([undefined, undefined, '503']);
    expect(state.collected.totalSize).toBe(2_000);
    for (const caller of callers.slice(0, 2)) caller.abort();
    expect(state).toMatchObject({ collected: { totalSize: 0 }, inFlightCount: 0 });
  });
});

describe('batches that are too large', () => {
  const MANY = 8;
  const chunk = () => new Uint8Array(MEBIBYTE / 2).fill(0x20).buffer;
  const chunkCountMax = Math.ceil(batch.sizeBytesMax / chunk().byteLength);

  /** Turns end after some looks at the clock, however fast the machine is. */
  const stateWithShortTurns = () => {
    let nowMs = 0;
    return { ...stateWith(64 * MEBIBYTE), turns: new Turns(() => nowMs++) };
  };

  test('are counted in turns, so many of one workspace delay another workspace by one turn', async () => {
    const state = stateWithShortTurns();
    const ended: string[] = [];
    for (let n = 0; n < MANY; n++) {
      const { receive } = begin(state, '', () => ended.push('too large'));
      for (let index = 0; index <= chunkCountMax; index++)
        receive(chunk(), index === chunkCountMax);
    }
    void state.turns.next(2).then(() => ended.push('other'));
    await vi.waitFor(() => expect(ended).toHaveLength(MANY + 1), 10_000);
    expect(ended[0]).toBe('other');
    expect(state).toMatchObject({ collected: { totalSize: 0 }, inFlightCount: 0 });
  });

  test('are read no faster than they are counted, and their calls are counted to the end', async () => {
    const state = stateWithShortTurns();
    let counted: Body | undefined;
    const caller = begin(state, '', (body) => (counted = body));
    const item = Buffer.from('{"a":[{}]},'.padEnd(1_024, ' '));
    caller.receive(new Uint8Array(Buffer.from('{"batch":[')).buffer, false);
    const items = new Uint8Array(Buffer.concat(Array<Buffer>(1_024).fill(item)));
    let itemCount = 0;
    let pauseCount = 0;
    for (; itemCount * item.length < batch.sizeBytesMax + 4 * MEBIBYTE; itemCount += 1_024) {
      caller.receive(items.slice().buffer, false);
      if (!caller.isPaused) continue;
      pauseCount++;
      await vi.waitFor(() => expect(caller.isPaused).toBe(false), 5_000);
    }
    expect(pauseCount).toBeGreaterThanOrEqual(4);
    // As much as is counted is not held.
    expect(state.collected.totalSize).toBe(0);
    caller.receive(new Uint8Array(Buffer.from('{}]}')).buffer, true);
    await vi.waitFor(() => expect(counted).toBeDefined(), 5_000);
    expect(counted).toEqual({ outcome: 'too-large', callCount: itemCount + 1 });
  });

  test('are released when their senders hang up, and are not counted if capacity runs out', async () => {
    for (const end of ['abort', 'fill'] as const) {
      const state = {
        ...stateWithShortTurns(),
        collected: capacityOfOne(batch.sizeBytesMax + MEBIBYTE),
      };
      let taken: Body | undefined;
      const caller = begin(state, '', (body) => (taken = body));
      for (let index = 0; index <= chunkCountMax; index++) caller.receive(chunk(), false);
      for (let turn = 0; turn < 3; turn++) await new Promise((next) => setImmediate(next));
      if (end === 'abort') caller.abort();
      else
        for (let index = 1; index <= 2 * chunkCountMax; index++)
          caller.receive(chunk(), index === 2 * chunkCountMax);
      expect(state.collected.totalSize).toBeLessThanOrEqual(chunk().byteLength);
      for (let turn = 0; turn < 50; turn++) await new Promise((next) => setImmediate(next));
      expect(taken).toEqual(end === 'abort' ? undefined : { outcome: 'too-large' });
      expect(state).toMatchObject({ collected: { totalSize: 0 }, inFlightCount: 0 });
    }
  });
});

test('a sender has its whole time again once the chunks of its too large batch are counted', async () => {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
  onTestFinished(() => void vi.useRealTimers());
  const state = stateWith(2 * batch.sizeBytesMax);
  const caller = begin(state, '', () => undefined, '1', 1);
  caller.receive(new Uint8Array(batch.sizeBytesMax + 1).fill(0x20).buffer, false);
  expect(caller.isPaused).toBe(true);
  vi.advanceTimersByTime(2_900);
  while (caller.isPaused) await new Promise((next) => setImmediate(next));
  vi.advanceTimersByTime(2_900);
  expect(state.inFlightCount).toBe(1);
  vi.advanceTimersByTime(200);
  expect(state.inFlightCount).toBe(0);
});

test('a body in chunks of one byte holds little more memory than its size', async () => {
  const state = stateWith(64 * MEBIBYTE);
  const caller = begin(state, '', () => undefined);
  const one = new Uint8Array([0x20]).buffer;
  const before = process.memoryUsage();
  for (let n = 1; n <= 1_000_000; n++) {
    caller.receive(one, false);
    // More in one turn of the event loop, and the connection is cut.
    if (n % 2_048 === 0) await iteration();
  }
  const after = process.memoryUsage();
  expect(state.collected.totalSize).toBe(1_000_000);
  const held = after.heapUsed + after.external - before.heapUsed - before.external;
  // This includes garbage. Kept one by one, the chunks are 100 MB.
  expect(held).toBeLessThan(50 * MEBIBYTE);
  caller.abort();
  expect(state.collected.totalSize).toBe(0);
});

describe('chunks of bodies that come in parts', () => {
  const line = new Uint8Array(200).buffer;
  const tiny = new Uint8Array(32).buffer;
  /** By a clock that stands still. */
  const opener = (now = () => 0) => {
    const state = { ...stateWith(64 * MEBIBYTE), bodyReads: new BodyReads(now) };
    return () => begin(state, '', () => undefined);
  };
  const receive = (caller: ReturnType<typeof begin>, chunk: ArrayBuffer, count: number) => {
    for (let n = 0; n < count && !caller.isCut; n++) caller.receive(chunk, false);
  };

  test('of one connection keep the others waiting for one turn of the event loop', async () => {
    const open = opener();
    const first = open();
    const second = open();
    receive(first, line, 1);
    receive(second, line, 1);
    await iteration();
    receive(first, line, 4_000);
    expect(second.isPaused).toBe(false);
    receive(first, line, 2_000);
    expect([first.isPaused, second.isPaused]).toEqual([false, true]);
    // One that begins in this turn waits too.
    const third = open();
    receive(third, line, 1);
    expect(third.isPaused).toBe(true);
    await iteration();
    expect([second.isPaused, third.isPaused]).toEqual([false, false]);
  });

  test('end the connection if they are more than a client can make, of any size', async () => {
    for (const chunk of [line, tiny, new Uint8Array(0).buffer]) {
      const caller = opener()();
      receive(caller, chunk, 21_000);
      expect(caller.isCut).toBe(false);
      receive(caller, chunk, 3_001);
      expect(caller.isCut).toBe(true);
      await iteration();
    }
  });

  test('that came while the process could not read them are read', async () => {
    let nowMs = 0;
    const caller = opener(() => nowMs)();
    receive(caller, line, 1);
    await iteration();
    nowMs += 1_000;
    // Lines at 100,000 a second.
    receive(caller, line, 60_000);
    expect(caller.isCut).toBe(false);
  });

  test('that several connections bring at once share the limit of one connection', async () => {
    let nowMs = 0;
    const open = opener(() => nowMs);
    const callers = Array.from({ length: 5 }, open);
    for (const caller of callers) {
      receive(caller, line, 2_000);
      await iteration();
    }
    nowMs += 900;
    for (const caller of callers) {
      receive(caller, line, 1);
      await iteration();
    }
    const first = callers[0] as (typeof callers)[number];
    receive(first, line, 36_000);
    expect(first.isCut).toBe(false);
    receive(first, line, 10_000);
    expect(first.isCut).toBe(true);
  });
});

describe('large bodies', () => {
  const large = new Uint8Array(100_000).fill(0x20);

  test('are read one each iteration of the event loop, so that other calls are answered between two', async () => {
    const state = stateWith(4 * MEBIBYTE);
    let takenCount = 0;
    for (let n = 0; n < 10; n++)
      begin(state, '', () => takenCount++).receive(large.slice().buffer, true);
    expect(state.collected.totalSize).toBe(10 * large.length);
    const counts: number[] = [];
    while (takenCount < 10) {
      await new Promise((resolve) => setImmediate(resolve));
      counts.push(takenCount);
    }
    expect(counts.length).toBeGreaterThanOrEqual(10);
    await vi.waitFor(() => expect(state.collected.totalSize).toBe(0), 5_000);
  });

  test('of a workspace that sends many delay the bodies of another workspace by one turn', async () => {
    const state = stateWith(16 * MEBIBYTE);
    const taken: string[] = [];
    const send1 = (authorization: string) =>
      begin(state, '', () => taken.push(authorization), authorization).receive(
        large.slice().buffer,
        true,
      );
    for (let n = 0; n < 40; n++) send1('1');
    send1('2');
    await vi.waitFor(() => expect(taken).toHaveLength(41), 5_000);
    expect(taken.indexOf('2')).toBeLessThanOrEqual(2);
  });

  test.each(['', 'gzip'])('(%s) whose sender hangs up are dropped', async (encoding) => {
    const state = stateWith(4 * MEBIBYTE);
    const body = new Uint8Array(encoding === '' ? large : gzipSync(large));
    let isTaken = false;
    const caller = begin(state, encoding, () => (isTaken = true));
    caller.receive(body.buffer, true);
    caller.abort();
    await vi.waitFor(() => expect(state.collected.totalSize).toBe(0), 5_000);
    expect(state.inflations.runningCount).toBe(0);
    expect(isTaken).toBe(false);
    expect(state.inFlightCount).toBe(0);
  });
});

describe('compressed bodies', () => {
  test('that come at once are inflated a few at a time, in turn, and all are taken', async () => {
    const state = stateWith(4 * MEBIBYTE);
    const before = process.memoryUsage().arrayBuffers;
    let heldSizeBytes: number | undefined;
    const taken: number[] = [];
    const outcomes = new Set<string>();
    const callers = Array.from({ length: 60 }, (_, n) =>
      send(state, BOMB, ({ outcome }) => {
        outcomes.add(outcome);
        heldSizeBytes ??= process.memoryUsage().arrayBuffers - before;
        taken.push(n);
      }),
    );
    expect(state.collected.totalSize).toBe(60 * BOMB.length);
    await vi.waitFor(() => expect(taken).toHaveLength(60), 60_000);
    // Four bodies with the buffers of zlib, and ended bodies that are not collected yet. Not sixty.
    expect(heldSizeBytes).toBeLessThan(16 * batch.sizeBytesMax);
    // Inflated whole: it is white space.
    expect(outcomes).toEqual(new Set(['invalid-json']));
    // Four at a time: each body is taken at most three places away from its turn.
    for (const [place, n] of taken.entries()) expect(Math.abs(place - n)).toBeLessThan(4);
    expect(new Set(callers.map(({ status }) => status))).toEqual(new Set(['200 OK']));
    expect(state).toMatchObject({ collected: { totalSize: 0 }, inFlightCount: 0 });
  });

  test('that wait are counted, and refused with 503 beyond the bound', async () => {
    const state = stateWith(10 * BOMB.length);
    let takenCount = 0;
    const callers = Array.from({ length: 15 }, () => send(state, BOMB, () => takenCount++));
    expect(callers.filter(({ status }) => status?.startsWith('503'))).toHaveLength(5);
    await vi.waitFor(() => expect(takenCount).toBe(10), 60_000);
    expect(state).toMatchObject({ collected: { totalSize: 0 }, inFlightCount: 0 });
    const late = send(state, BOMB, () => takenCount++);
    await vi.waitFor(() => expect(late.status).toBe('200 OK'), 60_000);
  });

  test('whose senders hang up are released once: waiting ones immediately, ones under way at their end', async () => {
    const state = stateWith(4 * MEBIBYTE);
    const callers = Array.from({ length: 20 }, () => send(state, BOMB, () => undefined));
    for (const caller of callers) caller.abort();
    expect(state.inFlightCount).toBe(0);
    expect(state.collected.totalSize).toBeLessThanOrEqual(4 * BOMB.length);
    let isTaken = false;
    send(state, BOMB, () => (isTaken = true));
    await vi.waitFor(() => expect(isTaken).toBe(true), 60_000);
    await vi.waitFor(() => expect(state.collected.totalSize).toBe(0), 60_000);
    expect(state.inflations).toMatchObject({ runningCount: 0 });
  });

  test('that cannot be inflated, or not within the limit, give back their turn', async () => {
    const state = stateWith(4 * MEBIBYTE);
    let takenCount = 0;
    const tooLarge = gzipSync(Buffer.alloc(batch.sizeBytesMax + 1, 0x20));
    for (let n = 0; n < 20; n++) {
      send(state, n % 2 === 0 ? tooLarge : Buffer.from('not gzip'), () => takenCount++);
    }
    await vi.waitFor(() => expect(takenCount).toBe(20), 60_000);
    expect(state).toMatchObject({ collected: { totalSize: 0 }, inflations: { runningCount: 0 } });
  });
});
