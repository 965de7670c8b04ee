/** Streams on simulated sockets, with senders that a test controls. */
import { createHash } from 'node:crypto';
import type { SharedCapacity } from '@sluice/platform/process/shared-capacity';
import { onTestFinished } from 'vitest';
import { KeyRing } from '../../src/auth/authenticate.ts';
import { Batcher } from '../../src/commit/batcher.ts';
import type { ServerState } from '../../src/http/server-state.ts';
import { noInflations } from '../../src/http/inflate-in-turn.ts';
import { Head } from '../../src/http/request-head.ts';
import { capacityOfOne } from './capacity-of-one.ts';
import { CommitSlots } from '../../src/stream/commit-slots.ts';
import { HeldBytes } from '../../src/stream/held-bytes.ts';
import { StreamPace } from '../../src/stream/stream-pace.ts';
import { RequestTurns } from '../../src/http/answer.ts';
import { CutConnections } from '../../src/connections/cut-connections.ts';
import { BodyReads } from '../../src/body/body-reads.ts';
import { PieceBlocks } from '../../src/body/piece-blocks.ts';
import { RepeatedKeyLooks } from '../../src/calls/repeated-key.ts';
import { DemoGate } from '../../src/auth/demo-gate.ts';
import { Turns } from '../../src/http/turns.ts';
import { StreamExchange } from '../../src/stream/stream-exchange.ts';

export const MEBIBYTE = 1_048_576;

export const writeKey = (environmentId: number) => ({
  kind: 'pipelines' as const,
  siteId: null,
  secretHash: createHash('sha256').update('write-key').digest(),
  environmentId,
  accountId: '1',
  phoneIdentifies: false,
  testCredentialId: null,
});

/** A stream with a write key of workspace 1, until the test ends. Its sender reads unless the test stops it. */
export function openStream(
  given: {
    strictMode?: string;
    contentEncoding?: string;
    idleTimeoutMs?: number;
    /** Of the write key; 1 if it is absent. */
    owner?: number;
    places?: SharedCapacity;
    held?: HeldBytes;
    keys?: readonly ReturnType<typeof writeKey>[];
  } = {},
) {
  let hasCapacity = true;
  let isPaused = false;
  let isEnded = false;
  let text = '';
  let abort: () => void = () => undefined;
  let receive: (chunk: ArrayBuffer, isLast: boolean) => void = () => undefined;
  let drain: () => boolean = () => true;
  const refused: (number | undefined)[] = [];
  const issueCodes: string[] = [];
  let committedCount = 0;
  const keys = new KeyRing();
  keys.replace(given.keys ?? [writeKey(given.owner ?? 1)]);
  const turns = new Turns(() => performance.now());
  const state: ServerState = {
    isStopping: false,
    inFlightCount: 0,
    receivedCount: 0,
    heldCount: 0,
    refusedCounts: new Map(),
    collected: capacityOfOne(MEBIBYTE),
    unread: capacityOfOne(MEBIBYTE),
    inflations: noInflations(),
    streams: new Set(),
    turns,
    demoGate: new DemoGate([]),
    repeatedKeys: new RepeatedKeyLooks(() => performance.now()),
    bodyReads: new BodyReads(() => performance.now()),
    blocks: new PieceBlocks(1_048_576),
    requestTurns: new RequestTurns(),
    cuts: new CutConnections(),
    ownerOf: () => given.owner ?? 1,
  };
  const batcher = new Batcher({
    shardCount: 1,
    commit: (commitBatches) => {
      committedCount += commitBatches.length;
      return Promise.resolve('broker');
    },
    newId: () => 'id',
    pending: capacityOfOne(MEBIBYTE),
    onCommitFailure: () => undefined,
  });
  const res = {
    onAborted: (handler: () => void) => (abort = handler),
    onData: (handler: typeof receive) => (receive = handler),
    onWritable: (handler: () => boolean) => (drain = handler),
    cork: (write: () => void) => write(),
    writeStatus: () => undefined,
    writeHeader: () => undefined,
    write: (part: string) => {
      text += part;
      return hasCapacity;
    },
    end: () => (isEnded = true),
    getRemoteAddressAsText: () => Uint8Array.from(Buffer.from('192.0.2.7')).buffer,
    close() {
      isEnded = true;
      abort();
    },
    pause: () => void (isPaused = true),
    resume: () => void (isPaused = false),
  };
  const head = new Head();
  head.authorization = `Basic ${Buffer.from('write-key:').toString('base64')}`;
  head.strictMode = given.strictMode ?? '';
  head.contentEncoding = given.contentEncoding ?? '';
  const options = {
    keys,
    batcher,
    recordUnauthorized: (_: string, environmentId?: number) => void refused.push(environmentId),
    recordRefusal: (_: unknown, __: string, issues: readonly { code: string }[]) =>
      void issueCodes.push(...issues.map(({ code }) => code)),
    retryAfterSeconds: () => 1,
    rateLimiter: undefined,
    now: Date.now,
    newId: () => 'id',
    turns,
    monotonicNow: () => performance.now(),
    // These pauses belong to the linger. They last until the sender has sent its last byte.
    pause: () => new Promise(() => undefined),
    commitSlots: new CommitSlots(turns),
    waitingSlots: new CommitSlots(turns),
    places: given.places ?? capacityOfOne(4),
    held: given.held ?? new HeldBytes(() => performance.now()),
    emptyInputPace: new StreamPace(() => performance.now()),
    idleTimeoutMs: given.idleTimeoutMs ?? 60_000,
  };
  const query = { id: undefined, line: undefined };
  new StreamExchange(res, head, query, state, options, undefined).receive(undefined);
  const stream = {
    keys,
    refused,
    issueCodes,
    committedCount: () => committedCount,
    isPaused: () => isPaused,
    isEnded: () => isEnded,
    answers: () =>
      text
        .split('\n')
        .slice(0, -1)
        .map((line) => JSON.parse(line) as { line: number; end?: string }),
    push: (bytes: Uint8Array<ArrayBuffer>, isLast = false) => receive(bytes.buffer, isLast),
    stopReading: () => (hasCapacity = false),
    read() {
      hasCapacity = true;
      drain();
    },
    stop: () => {
      for (const handle of state.streams) handle.stop();
    },
    abort: () => abort(),
  };
  onTestFinished(() => stream.abort());
  return stream;
}
