/**
 * The worker's own HTTP/1.1 client reads the answer of a receiver: alike however it is cut, and never more than its
 * bounds.
 */
import { deepEqual, ok } from 'node:assert/strict';
import { LastHead, ResponseReader } from '@sluice/worker/http/http-response';
import { cut, type FuzzTarget } from '../fuzz-target.ts';

const SIZE_BYTES_MAX = 16 * 1_024;

/** Of all answers, as if they came over one connection: earlier answers must not change the reading of later ones. */
const lastHead = new LastHead();

function read(pieces: readonly Buffer[]) {
  const reader = new ResponseReader(5_000, lastHead);
  let state = 'reading';
  for (const piece of pieces) {
    if (state !== 'reading') break;
    // The reader must not keep the piece itself: the socket's memory is used again.
    const lent = Buffer.from(piece);
    state = reader.read(lent);
    lent.fill(0x78);
  }
  const isEnded = state === 'reading' && reader.end();
  const { status, head, body, fault, keepAliveMs } = reader;
  ok(Buffer.byteLength(head) <= SIZE_BYTES_MAX, 'a head beyond its bound');
  // As text, a byte that is no character becomes three.
  ok(Buffer.byteLength(body) <= 3 * SIZE_BYTES_MAX, 'a body beyond its bound');
  ok((fault !== '') === (state === 'misbehaving'), 'a fault and a state that contradict it');
  ok(keepAliveMs >= 0 && keepAliveMs <= 5_000, `an idle time of ${keepAliveMs}`);
  ok(!isEnded || keepAliveMs === 0, 'a connection that ended is used again');
  // The cuts decide which of several faults is found first.
  return { state, isEnded, status, head, body };
}

/** @public `scripts/fuzz.ts` imports it by the file's name. */
export const target: FuzzTarget = {
  seeds: [
    'HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok',
    'HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 204 No Content\r\nconnection: close\r\n\r\n',
    'HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n3;a=b\r\nabc\r\n0\r\nx: y\r\n\r\n',
    'HTTP/1.0 500 No\r\nkeep-alive: timeout=5\r\n\r\nall of it',
  ],
  words: [
    'HTTP/1.1 ',
    '\r\n',
    '\r\n\r\n',
    '\n',
    'content-length: ',
    'transfer-encoding: chunked',
    'connection: keep-alive',
    'keep-alive: timeout=',
    '0\r\n\r\n',
    'ffffffffffff',
    '304',
    '101',
    '999999999999999',
  ],
  run(input, random) {
    deepEqual(read(cut(input, random)), read([input]));
  },
};
