/**
 * Senders of streams in chunks.
 *
 * They run in a process of their own, so that they are as fast as a client can be: `node chunk-sender.ts PORT AUTHORIZATION SHAPE`.
 * The process writes one line of JSON with the last line of each answer.
 */
import { once } from 'node:events';
import { request, type IncomingMessage } from 'node:http';
import { connect } from 'node:net';

export interface SenderShape {
  /** Of each chunk but the last. */
  readonly chunkSizeBytes: number;
  /** With its newline; at least 29. */
  readonly lineSizeBytes: number;
  readonly clientCount: number;
  readonly lineCount: number;
  /** Prepared bytes, as fast as the socket takes them: faster than nearly all clients make chunks. */
  readonly isPrepared?: boolean;
  /** Prepared too, and without an end. A connection that is cut is opened again. */
  readonly isHostile?: boolean;
}

const call = '{"type":"page","userId":"a"}';
const textOfLines = ({ lineSizeBytes, lineCount }: SenderShape): string =>
  `${call.padEnd(lineSizeBytes - 1)}\n`.repeat(lineCount);

async function sendHonestly(
  port: number,
  authorization: string,
  shape: SenderShape,
): Promise<string> {
  const bytes = Buffer.from(textOfLines(shape));
  const sender = request({
    port,
    path: '/v1/stream',
    method: 'POST',
    agent: false,
    headers: { Authorization: authorization, 'Transfer-Encoding': 'chunked' },
  });
  let failure = '';
  // Of a cut stream, the last line has the reason.
  let answer = '';
  sender.on('error', (error) => (failure = String(error)));
  sender.flushHeaders();
  const closed = new Promise<void>((resolve) => sender.once('close', resolve));
  const answered = once(sender, 'response').then(async ([response]) => {
    for await (const text of (response as IncomingMessage).setEncoding('utf8')) answer += text;
  });
  for (let at = 0; at < bytes.length && failure === ''; at += shape.chunkSizeBytes)
    if (!sender.write(bytes.subarray(at, at + shape.chunkSizeBytes)))
      await Promise.race([new Promise((resolve) => sender.once('drain', resolve)), closed]);
  sender.end();
  const lastLine = (): string => answer.trimEnd().split('\n').at(-1) ?? '';
  try {
    await answered;
    return lastLine();
  } catch (error) {
    return `${failure || String(error)} after ${lastLine()}`;
  }
}

const headOf = (authorization: string): string =>
  `POST /v1/stream HTTP/1.1\r\nHost: a\r\nAuthorization: ${authorization}\r\nTransfer-Encoding: chunked\r\n\r\n`;
const chunkOf = (text: string): string => `${text.length.toString(16)}\r\n${text}\r\n`;

/** Each line in a chunk of its own. */
async function sendPrepared(
  port: number,
  authorization: string,
  shape: SenderShape,
): Promise<string> {
  const chunk = chunkOf(textOfLines({ ...shape, lineCount: 1 }));
  const socket = connect(port, '127.0.0.1');
  let answer = '';
  let failure = '';
  socket.setEncoding('latin1').on('data', (part: string) => {
    answer += part;
    // The answer has no length, and the connection stays.
    if (answer.includes('"end":')) socket.destroySoon();
  });
  socket.on('error', (error) => (failure = String(error)));
  const closed = once(socket, 'close');
  socket.write(headOf(authorization));
  socket.write(`${chunk.repeat(shape.lineCount)}0\r\n\r\n`);
  await closed;
  return /^\{.*"end":.*$/m.exec(answer)?.[0] ?? `${failure || 'cut'} after ${answer.slice(-50)}`;
}

async function sendHostilely(
  port: number,
  authorization: string,
  shape: SenderShape,
): Promise<never> {
  const head = headOf(authorization);
  const chunk = chunkOf(textOfLines(shape).slice(0, shape.chunkSizeBytes));
  const chunks = Buffer.from(chunk.repeat(Math.ceil(1_048_576 / chunk.length)));
  for (;;) {
    const socket = connect(port, '127.0.0.1');
    socket.on('error', () => undefined).resume();
    const closed = new Promise<void>((resolve) => socket.once('close', () => resolve()));
    socket.write(head);
    while (!socket.destroyed)
      if (!socket.write(chunks))
        await Promise.race([new Promise((resolve) => socket.once('drain', resolve)), closed]);
  }
}

const [, file, port, authorization = '', shapeText = '{}'] = process.argv;
if (file === import.meta.filename) {
  const shape = JSON.parse(shapeText) as SenderShape;
  const sendWhole = shape.isPrepared ? sendPrepared : sendHonestly;
  const send = shape.isHostile ? sendHostilely : sendWhole;
  process.stdout.write('begins\n');
  const ends = await Promise.all(
    Array.from({ length: shape.clientCount }, () => send(Number(port), authorization, shape)),
  );
  process.stdout.write(`${JSON.stringify(ends)}\n`);
}
