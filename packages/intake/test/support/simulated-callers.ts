/** Calls on simulated sockets, whose bodies come as a test sends them. */
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
import { capacityOfOne } from './capacity-of-one.ts';

export const MEBIBYTE = 1_048_576;
export const batch = routes.find(({ pattern }) => pattern === '/v1/batch')?.call as Call;

export const stateWith = (collectedSizeBytesMax: number): ServerState => ({
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

/** A caller whose body comes as `receive` is called; `taken` gets the submitted body. */
export function begin(
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
