/** Calls on simulated sockets, whose bodies come as a test sends them. */
import { routes, type Call } from '../../src/calls/calls.ts';
import { Exchange, type Accept } from '../../src/http/exchange.ts';
import type { ServerState } from '../../src/http/server-state.ts';
import type { ResponseWriter } from '../../src/http/write-head.ts';
import { noInflations } from '../../src/http/inflate-in-turn.ts';
import { RequestTurns } from '../../src/http/answer.ts';
import { CutConnections } from '../../src/connections/cut-connections.ts';
import { BodyReads } from '../../src/body/body-reads.ts';
import { PieceBlocks } from '../../src/body/piece-blocks.ts';
import { RepeatedKeyLooks } from '../../src/calls/repeated-key.ts';
import { DemoGate } from '../../src/auth/demo-gate.ts';
import { Turns } from '../../src/http/turns.ts';
import type { Outcome } from '../../src/calls/outcome.ts';
import type { Body } from '../../src/calls/read-body.ts';
import { Head } from '../../src/http/request-head.ts';
import { capacityOfOne } from './capacity-of-one.ts';

export const MEBIBYTE = 1_048_576;
export const batch = routes.find(({ pattern }) => pattern === '/v1/batch')?.call as Call;

export const stateWith = (
  collectedSizeBytesMax: number,
): ServerState & { readonly cuts: CutConnections } => ({
  isStopping: false,
  inFlightCount: 0,
  receivedCount: 0,
  heldCount: 0,
  refusedCounts: new Map(),
  collected: capacityOfOne(collectedSizeBytesMax),
  unread: capacityOfOne(MEBIBYTE),
  inflations: noInflations(4),
  streams: new Set(),
  turns: new Turns(() => performance.now()),
  demoGate: new DemoGate([]),
  repeatedKeys: new RepeatedKeyLooks(() => performance.now()),
  bodyReads: new BodyReads(() => performance.now()),
  blocks: new PieceBlocks(1_048_576),
  requestTurns: new RequestTurns(),
  cuts: new CutConnections(),
  ownerOf: (authorization) => Number(authorization),
});

/** A caller whose body comes as `receive` is called; `taken` gets the submitted body. */
export function begin(
  state: ServerState,
  encoding: string,
  taken: (body: Body) => void,
  authorization = '1',
  transferEncodingCount = 0,
  outcome: Outcome = { outcome: 'accepted' },
) {
  const told: {
    status: string | undefined;
    headers: Map<string, string>;
    abort: () => void;
    isPaused: boolean;
    isCut: boolean;
    /** True until the test lets its reader take bytes. */
    isFull: boolean;
    /** The body of the answer, as far as it was written. */
    text: string;
    isEnded: boolean;
    /** The reader takes bytes again. */
    drain: () => void;
  } = {
    status: undefined,
    headers: new Map(),
    isCut: false,
    isFull: false,
    text: '',
    isEnded: false,
    drain: () => undefined,
    abort: () => undefined,
    isPaused: false,
  };
  let receive: (chunk: ArrayBuffer, isLast: boolean) => void = () => undefined;
  const res: ResponseWriter = {
    onAborted: (handler) => (told.abort = handler),
    onData: (handler) => (receive = handler),
    cork: (write) => write(),
    writeStatus: (status) => (told.status = status),
    writeHeader: (name, value) => told.headers.set(name, value),
    write(piece) {
      told.text += Buffer.from(piece).toString();
      return !told.isFull;
    },
    onWritable: (handler) => (told.drain = handler),
    end(body, closesConnection) {
      told.status ??= '200 OK';
      // As uWebSockets.js does: behind a piece the header lands in the body.
      if (closesConnection && told.text !== '') told.text += 'Connection: close\r\n';
      else if (closesConnection) told.headers.set('Connection', 'close');
      told.text += body;
      told.isEnded = true;
    },
    getRemoteAddressAsText: () => Uint8Array.from(Buffer.from('192.0.2.7')).buffer,
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
    answer(outcome);
  };
  new Exchange(res, head, batch, [], state, accept, undefined).receive();
  return Object.assign(told, { receive });
}
