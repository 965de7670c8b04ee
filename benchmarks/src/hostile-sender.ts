/**
 * One hostile sender in a process of its own: `node hostile-sender.ts ATTACK PORT`. So it takes no time of the honest
 * one. It repeats its attack until it is ended.
 */
import { connect } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { gzipSync } from 'node:zlib';

const MEBIBYTE = 1_048_576;
const AUTHORIZATION = `Basic ${Buffer.from('demo_write_key:').toString('base64')}`;

const LINE =
  '{"type":"track","userId":"ann","event":"Order Placed","properties":{"amount":42.5}}\n';
/** Members of gzip behind each other are one body. */
const repeated = (text: string, megabytes: number): Buffer => {
  const member = gzipSync(Buffer.alloc(MEBIBYTE, text), { level: 9 });
  return Buffer.concat(Array<Buffer>(megabytes).fill(member));
};
const batchOf = (item: string): string => {
  const count = Math.floor((MEBIBYTE - 20) / (item.length + 1));
  return `{"batch":[${Array(count).fill(item).join(',')}]}`;
};
const manyKeys = `{"type":"identify","userId":"a","traits":{${Array.from({ length: 2_500 }, (_, key) => `"k${key}":1`).join(',')}}}`;

const manyTraits = `{"type":"identify","userId":"a","traits":{${Array.from({ length: 299 }, (_, key) => `"k${key}":${key}`).join(',')}}}\n`;
/** Members and blocks that have no content: any number of them inflates to 0 bytes. */
const emptyMembers = (): Buffer =>
  Buffer.alloc(10 * MEBIBYTE - ((10 * MEBIBYTE) % 20), gzipSync(''));
const emptyBlocks = (): Buffer => Buffer.alloc(10 * MEBIBYTE, Buffer.from([0, 0, 0, 0xff, 0xff]));

interface Attack {
  readonly path: string;
  readonly encoding?: 'gzip' | 'deflate';
  readonly body: () => Buffer;
  readonly senderCount: number;
  /** The connection is cut after so long; otherwise after its answer. */
  readonly cutAfterMs?: number;
}

const stream = (body: () => Buffer, more: Partial<Attack> = {}): Attack => ({
  path: '/v1/stream',
  encoding: 'gzip',
  body,
  senderCount: 1,
  ...more,
});

const ATTACKS: Readonly<Record<string, Attack>> = {
  'stream cut': stream(() => repeated(LINE, 800), { cutAfterMs: 300 }),
  'stream of lines': stream(() => repeated(LINE, 800)),
  'blank lines': stream(() => repeated('\n', 1_000), { senderCount: 9 }),
  nesting: stream(() => repeated('[', 800)),
  'nested lines': stream(() => repeated(`${'['.repeat(60_000)}\n`, 400)),
  'no end of line': stream(() => repeated('x', 800)),
  'batch that inflates': {
    path: '/v1/batch',
    encoding: 'gzip',
    body: () => gzipSync(batchOf(LINE.trim())),
    senderCount: 6,
  },
  'batch of many keys': {
    path: '/v1/batch',
    encoding: 'gzip',
    body: () => gzipSync(batchOf(manyKeys)),
    senderCount: 2,
  },
  'body that is too large': {
    path: '/v1/batch',
    body: () => Buffer.alloc(15 * MEBIBYTE, 0x20),
    senderCount: 2,
  },
  'many traits': stream(() => repeated(manyTraits, 100), { senderCount: 4 }),
  'empty members': stream(emptyMembers, { senderCount: 4 }),
  'empty blocks': stream(emptyBlocks, { encoding: 'deflate', senderCount: 4 }),
  'forty held open': stream(() => repeated(LINE, 4), { senderCount: 40, cutAfterMs: 60_000 }),
};

export const ATTACK_NAMES = Object.keys(ATTACKS);

async function send(attack: Attack, port: number, body: Buffer): Promise<void> {
  const isHeldOpen = attack.cutAfterMs === 60_000;
  const head = [
    `POST ${attack.path} HTTP/1.1`,
    `Host: 127.0.0.1:${port}`,
    `Authorization: ${AUTHORIZATION}`,
    ...(attack.encoding ? [`Content-Encoding: ${attack.encoding}`] : []),
    // A body that is held open announces more bytes.
    `Content-Length: ${body.length + (isHeldOpen ? 1 : 0)}`,
    '\r\n',
  ].join('\r\n');
  const socket = connect(port, '127.0.0.1');
  const ended = new Promise<void>((resolve) => {
    socket.once('error', () => resolve()).once('close', () => resolve());
    socket.on('data', (bytes) => {
      if (/"end":|^HTTP\/1\.1 [2345]\d\d [^]*\r\n\r\n\{/.test(bytes.toString('latin1'))) resolve();
    });
  });
  socket.write(head);
  socket.write(body);
  await Promise.race([
    ended,
    ...(attack.cutAfterMs === undefined ? [] : [sleep(attack.cutAfterMs)]),
  ]);
  socket.resetAndDestroy();
}

async function repeatSend(attack: Attack, port: number, body: Buffer): Promise<never> {
  for (;;) {
    await send(attack, port, body);
    await sleep(10);
  }
}

const [, file, name = '', port] = process.argv;
if (file === import.meta.filename) {
  const attack = ATTACKS[name];
  if (attack === undefined) throw new Error(`there is no attack ${name}`);
  const body = attack.body();
  process.stdout.write('begins\n');
  await Promise.all(
    Array.from({ length: attack.senderCount }, () => repeatSend(attack, Number(port), body)),
  );
}
