/** A connection without a whole head is closed after its ticks; one that may be in use is never touched again. */
import { expect, test } from 'vitest';
import { CutConnections } from '../../src/connections/cut-connections.ts';
import {
  SilentConnections,
  type ConnectionHandle,
} from '../../src/connections/silent-connections.ts';

/** As uWebSockets.js has them: touched after its end, a handle is memory of something else. */
class TestHandle implements ConnectionHandle {
  isClosed = false;
  touchedCount = 0;
  #aborted: () => void = () => undefined;
  readonly #address: number;

  constructor(address: number) {
    this.#address = address;
  }

  getRemoteAddress(): ArrayBuffer {
    return Uint8Array.of(127, 0, 0, this.#address).buffer;
  }

  getRemoteAddressAsText(): ArrayBuffer {
    return Uint8Array.from(Buffer.from(`127.0.0.${this.#address}`)).buffer;
  }

  onAborted(callback: () => void): void {
    this.#aborted = callback;
  }

  close(): void {
    this.touchedCount++;
    this.isClosed = true;
    this.#aborted();
  }

  /** The client has gone. */
  leave(): void {
    this.#aborted();
  }
}

function watch(count: number, address = 1) {
  const cuts = new CutConnections();
  const silent = new SilentConnections(cuts);
  const handles = Array.from({ length: count }, () => new TestHandle(address));
  for (const handle of handles) silent.opened(handle);
  const ticks = (tickCount: number) => {
    for (let index = 0; index < tickCount; index++) silent.tick();
  };
  return { silent, handles, ticks, cuts };
}

test('connections without a request are closed after 2.5 s, each by its own age', () => {
  const { silent, handles, ticks, cuts } = watch(2);
  ticks(6);
  const later = new TestHandle(1);
  silent.opened(later);
  ticks(4);
  expect(handles.map(({ isClosed }) => isClosed)).toEqual([false, false]);
  ticks(1);
  expect(handles.map(({ isClosed }) => isClosed)).toEqual([true, true]);
  expect(later.isClosed).toBe(false);
  ticks(20);
  expect(later.isClosed).toBe(true);
  expect(handles.map(({ touchedCount }) => touchedCount)).toEqual([1, 1]);
  expect(cuts.counts.get('silent')).toBe(3);
});

test('a request leaves all connections of its address alone that are open by then, and no other', () => {
  const { silent, handles, ticks } = watch(3);
  const elsewhere = new TestHandle(2);
  silent.opened(elsewhere);
  silent.heard(new TestHandle(1));
  const after = new TestHandle(1);
  silent.opened(after);
  // One whose watch has ended and which has no request reports its end all the same.
  handles[0]?.leave();
  ticks(20);
  expect(handles.map(({ touchedCount }) => touchedCount)).toEqual([0, 0, 0]);
  expect([elsewhere.isClosed, after.isClosed]).toEqual([true, true]);
});

test('a connection that has closed is not touched', () => {
  const { handles, ticks } = watch(2);
  handles[0]?.leave();
  ticks(20);
  expect(handles.map(({ touchedCount }) => touchedCount)).toEqual([0, 1]);
});

test('in a busy process connections are left to the limit of uWebSockets.js', () => {
  const { silent, handles, ticks } = watch(201);
  ticks(20);
  expect(handles.filter(({ isClosed }) => isClosed)).toHaveLength(200);
  const late = new TestHandle(1);
  silent.opened(late);
  for (let index = 0; index < 500; index++) silent.heard(new TestHandle(2));
  ticks(20);
  expect(late.isClosed).toBe(true);
  const later = new TestHandle(1);
  silent.opened(later);
  for (let index = 0; index < 501; index++) silent.heard(new TestHandle(2));
  ticks(20);
  expect(later.touchedCount).toBe(0);
});

test('ticks are needed only while a connection is watched', () => {
  const { silent, handles } = watch(1);
  expect(silent.tick()).toBe(true);
  handles[0]?.leave();
  expect(silent.tick()).toBe(false);
  silent.opened(new TestHandle(1));
  expect(silent.tick()).toBe(true);
  silent.heard(new TestHandle(1));
  expect(silent.tick()).toBe(false);
});
