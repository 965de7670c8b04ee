/**
 * Requests that uWebSockets.js alone would misread, sent to the proxy.
 *
 * They are bytes (`docs/operations/proxy.md`, "The proxy in front of intake"). At each point at which the two could
 * disagree about the end of a request, a second call is hidden: it must not be taken. A call that is answered 200 must
 * be.
 */
import { connect } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Database } from '@sluice/database/connection/connection';
import { DEMO } from '@sluice/database/demo/seed-demo';
import { sql } from 'kysely';

const CRLF = '\r\n';
const AUTHORIZATION = `Authorization: Basic ${Buffer.from(`${DEMO.writeKey}:`).toString('base64')}`;
/** nginx waits for the rest of a request that it takes for half. */
const ANSWER_MS_MAX = 3_000;
const SETTLE_MS = 2_000;

const bodyOf = (id: string): string =>
  JSON.stringify({ userId: 'framed', event: 'framed', messageId: id });

const headOf = (path: string, ...lines: string[]): string =>
  [
    `POST ${path} HTTP/1.1`,
    'Host: localhost',
    AUTHORIZATION,
    'X-Strict-Mode: 1',
    ...lines,
    '',
    '',
  ].join(CRLF);

const whole = (id: string): string =>
  headOf('/v1/track', `Content-Length: ${bodyOf(id).length}`) + bodyOf(id);

const chunkOf = (text: string, size = text.length.toString(16)): string =>
  size + CRLF + text + CRLF;

const CHUNKED = 'Transfer-Encoding: chunked';
const LAST = `0${CRLF}${CRLF}`;

interface Case {
  readonly name: string;
  /** `id` of the call that is plain to see, `hidden` of the one that is not. */
  readonly bytes: (id: string, hidden: string) => string;
  /** May the plain one be taken? Its answer shows whether it was. */
  readonly answer: 'refused' | 'taken';
}

const CASES: readonly Case[] = [
  {
    name: 'a chunk size with a space before it',
    bytes: (id, hidden) =>
      headOf('/v1/track', CHUNKED) + chunkOf(bodyOf(id)) + ` 1${CRLF}${whole(hidden)}`,
    answer: 'refused',
  },
  {
    name: 'an empty chunk size',
    bytes: (id, hidden) =>
      headOf('/v1/track', CHUNKED) + chunkOf(bodyOf(id)) + CRLF + whole(hidden),
    answer: 'refused',
  },
  {
    name: 'a header without a name',
    bytes: (id, hidden) =>
      headOf('/v1/track', `Content-Length: ${bodyOf(id).length}`).slice(0, -2) +
      `: x${CRLF}${whole(hidden)}`,
    answer: 'refused',
  },
  {
    name: 'a chunk that does not end with CRLF',
    bytes: (id) => headOf('/v1/track', CHUNKED) + chunkOf(bodyOf(id)).slice(0, -2) + `xx${LAST}`,
    answer: 'refused',
  },
  {
    name: 'Content-Length twice',
    bytes: (id, hidden) =>
      headOf('/v1/track', 'Content-Length: 0', `Content-Length: ${whole(hidden).length}`) +
      whole(hidden) +
      bodyOf(id),
    answer: 'refused',
  },
  {
    name: 'Content-Length and Transfer-Encoding',
    bytes: (id, hidden) =>
      headOf('/v1/track', CHUNKED, `Content-Length: ${bodyOf(id).length}`) + LAST + whole(hidden),
    answer: 'refused',
  },
  {
    name: 'an unknown Transfer-Encoding',
    bytes: (id) => headOf('/v1/track', 'Transfer-Encoding: xchunked') + chunkOf(bodyOf(id)) + LAST,
    answer: 'refused',
  },
  {
    name: 'a space before a header’s colon',
    bytes: (id, hidden) =>
      headOf('/v1/track', 'Content-Length : 0', `Content-Length: ${whole(hidden).length}`) +
      whole(hidden) +
      bodyOf(id),
    answer: 'refused',
  },
  {
    name: 'trailers after the last chunk',
    bytes: (id) =>
      headOf('/v1/track', CHUNKED) + chunkOf(bodyOf(id)) + `0${CRLF}X: y${CRLF}${CRLF}`,
    answer: 'taken',
  },
  {
    name: 'a chunk extension',
    bytes: (id) =>
      headOf('/v1/track', CHUNKED) +
      chunkOf(bodyOf(id), `${bodyOf(id).length.toString(16)};a=b`) +
      LAST,
    answer: 'taken',
  },
  {
    name: 'lines that end with LF',
    bytes: (id) => whole(id).replaceAll(CRLF, '\n'),
    answer: 'taken',
  },
  {
    name: 'a second request before the first answer',
    bytes: (id, hidden) => whole(id) + whole(`seen-${hidden}`),
    answer: 'taken',
  },
  {
    name: 'a chunk extension in a stream',
    bytes: (id) => {
      const line = `${JSON.stringify({ type: 'track', ...(JSON.parse(bodyOf(id)) as object) })}\n`;
      return (
        headOf('/v1/stream', CHUNKED) + chunkOf(line, `${line.length.toString(16)};a=b`) + LAST
      );
    },
    answer: 'taken',
  },
];

/** @returns the failures; empty if the proxy keeps all of it away. */
export async function tryHostileFraming(port: number, database: Database): Promise<string[]> {
  const problems: string[] = [];
  const plain = (index: number) => `plain-${index}`;
  const statuses = await Promise.all(
    CASES.map(({ bytes }, index) => send(port, bytes(plain(index), `hidden-${index}`))),
  );
  await sleep(SETTLE_MS);
  const { rows } = await sql<{ eventId: string }>`
    select event_id as "eventId" from events where name = 'framed'`.execute(database);
  const stored = new Set(rows.map(({ eventId }) => eventId));
  for (const [index, { name, answer }] of CASES.entries()) {
    const status = statuses[index];
    const isTaken = status === 200;
    if (isTaken !== (answer === 'taken')) problems.push(`${name}: answered ${status}`);
    if (isTaken !== stored.has(plain(index)))
      problems.push(`${name}: answered ${status}, and ${isTaken ? 'not ' : ''}stored`);
    if (stored.has(`hidden-${index}`)) problems.push(`${name}: the hidden call was taken`);
  }
  return problems;
}

/** The status of the first answer; undefined without an answer. */
function send(port: number, bytes: string): Promise<number | undefined> {
  return new Promise((resolve) => {
    const socket = connect(port, '127.0.0.1', () => socket.write(bytes, 'latin1'));
    let text = '';
    const end = () => {
      socket.destroy();
      const [, status] = /^HTTP\/1\.1 (\d+)/.exec(text) ?? [];
      resolve(status === undefined ? undefined : Number(status));
    };
    setTimeout(end, ANSWER_MS_MAX);
    socket.on('data', (part: Buffer) => (text += part.toString('latin1')));
    socket.on('error', () => undefined);
    socket.on('close', end);
  });
}
