/** The client against receivers that fail as receivers do: each with the class it must give. */
import { createServer, type AddressInfo } from 'node:net';
import { getCACertificates, setDefaultCACertificates, type TLSSocket } from 'node:tls';
import { beforeAll, describe, expect, test } from 'vitest';
import type { HttpOutcome } from '../../src/http/http-outcome.ts';
import {
  AUTHORITY_CERTIFICATE,
  EXPIRED_CERTIFICATE,
  GOOD_CERTIFICATE,
  OTHER_NAME_CERTIFICATE,
  RECEIVER_KEY,
  SELF_SIGNED_CERTIFICATE,
} from '../support/certificates.ts';
import { answer } from '../support/receiver.ts';
import {
  clientOf,
  closes,
  post,
  receiverOf,
  respond,
  sendTo,
} from '../support/http-client-world.ts';

describe('a connection that fails is', () => {
  test('refused if the port is closed', async () => {
    const server = createServer().listen(0, '127.0.0.1');
    await new Promise((resolve) => server.once('listening', resolve));
    const { port } = server.address() as AddressInfo;
    await new Promise((resolve) => server.close(resolve));
    const sent = await post(clientOf(), `http://127.0.0.1:${port}/`);
    expect(sent).toMatchObject({
      outcome: 'failure',
      failure: 'connection_refused',
      message: `the address and port refuse the connection: 127.0.0.1:${port} (ECONNREFUSED)`,
      status: null,
    });
  });

  test('refused also if every address of a name refuses', async () => {
    const resolve = async () => [
      { address: '127.0.0.2', family: 4 },
      { address: '127.0.0.3', family: 4 },
    ];
    const sent = await post(clientOf({ resolve }), 'http://receiver.test:9/');
    expect(sent).toMatchObject({
      failure: 'connection_refused',
      message: 'the address and port refuse the connection: 127.0.0.2:9 (ECONNREFUSED)',
    });
  });

  test.each<[string, string]>([
    ['before the head', ''],
    ['during the head', 'HTTP/1.1 20'],
    ['after the head', 'HTTP/1.1 200 OK\r\ncontent-length: 10\r\n\r\nabc'],
  ])('reset, %s', async (_, text) => {
    const sent = await sendTo(({ socket }) =>
      socket.write(text, () => setTimeout(() => socket.resetAndDestroy(), 20)),
    );
    expect(sent).toMatchObject({
      outcome: 'failure',
      failure: 'connection_reset',
      message: 'the other side ended the connection before the end of its answer (ECONNRESET)',
    });
    expect(sent.receiver.requests).toHaveLength(1);
  });

  test.each<[string, string]>([
    ['before the head', ''],
    ['during the head', 'HTTP/1.1 20'],
    ['in the body', 'HTTP/1.1 200 OK\r\ncontent-length: 10\r\n\r\nabc'],
    ['in a chunked body', 'HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n5\r\nab'],
    ['in the last body', 'HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-length: 10\r\n\r\nabc'],
    [
      'in the last chunked body',
      'HTTP/1.1 200 OK\r\nconnection: close\r\ntransfer-encoding: chunked\r\n\r\n5\r\nab',
    ],
  ])('at its end, %s', async (_, text) => {
    const sent = await sendTo(({ socket }) => void socket.end(text));
    expect(sent).toMatchObject({ outcome: 'failure', failure: 'end_of_file' });
    expect(sent.receiver.requests).toHaveLength(1);
  });

  test('an answer all the same if an error status came before', async () => {
    const sent = await sendTo(
      ({ socket }) => void socket.end('HTTP/1.1 502 Bad\r\ncontent-length: 10\r\n\r\nabc'),
    );
    expect(sent).toMatchObject({ outcome: 'response', status: 502, body: 'abc' });
  });

  test.each<[string, string]>([
    ['another protocol', 'SSH-2.0-OpenSSH_9.6\r\n'],
    ['no protocol', '\0\0\0\u0001garbage garbage garbage'],
    ['a bare page', '<html>hello</html>'],
    ['a status that is none', 'HTTP/1.1 OK OK\r\n\r\n'],
    ['a head without end', `HTTP/1.1 200 OK\r\nx: ${'y'.repeat(64 * 1024)}\r\n\r\n`],
    ['two lengths', 'HTTP/1.1 200 OK\r\ncontent-length: 3\r\ncontent-length: 5\r\n\r\nabc'],
    [
      'an upgrade nobody asked for',
      'HTTP/1.1 101 Switching\r\nconnection: upgrade\r\nupgrade: x\r\n\r\n',
    ],
    ['a flood of early hints', 'HTTP/1.1 103 Early Hints\r\n\r\n'.repeat(5_000)],
    ['a flood of continues', 'HTTP/1.1 100 Continue\r\n\r\n'.repeat(5_000)],
  ])('a misbehaving server that sends %s', async (_, text) => {
    expect(await sendTo(respond(text))).toMatchObject({
      outcome: 'failure',
      failure: 'misbehaving_server',
    });
  });

  test('a name without an address', async () => {
    const resolve = async () => {
      // As Node has it.
      const error = new Error('getaddrinfo ENOTFOUND receiver.test');
      throw Object.assign(error, { code: 'ENOTFOUND', hostname: 'receiver.test' });
    };
    const sent = await post(clientOf({ resolve }), 'http://receiver.test/');
    expect(sent).toMatchObject({
      outcome: 'failure',
      failure: 'name_not_resolved',
      message: 'the name has no address: receiver.test (ENOTFOUND)',
    });
  });

  test.each([
    '',
    'receiver.test',
    'ftp://receiver.test/',
    'http://',
    'file:///etc/passwd',
    'http://a b/',
  ])('no endpoint: %j', async (endpoint) => {
    expect(await post(clientOf(), endpoint)).toMatchObject({
      outcome: 'failure',
      failure: 'unusable_endpoint',
    });
  });
});

describe('TLS', () => {
  beforeAll(() => {
    const before = getCACertificates('default');
    setDefaultCACertificates([...before, AUTHORITY_CERTIFICATE]);
    return () => setDefaultCACertificates(before);
  });

  const resolve = async () => [{ address: '127.0.0.1', family: 4 }];

  async function sendOverTls(
    cert: string,
    name = 'receiver.test',
    options = {},
  ): Promise<HttpOutcome> {
    const receiver = await receiverOf(respond(answer(200)), {
      key: RECEIVER_KEY,
      cert,
      ...options,
    });
    return post(clientOf({ resolve }), `https://${name}:${receiver.port}/`);
  }

  test('with a good certificate is an answer', async () => {
    expect(await sendOverTls(GOOD_CERTIFICATE)).toMatchObject({ outcome: 'response', status: 200 });
  });

  // In our words: OpenSSL's own change with its version and name its source files.
  test.each<[string, string, string, string]>([
    ['expired', EXPIRED_CERTIFICATE, 'receiver.test', 'has expired (CERT_HAS_EXPIRED)'],
    [
      'for another name',
      OTHER_NAME_CERTIFICATE,
      'receiver.test',
      'for other names than the name of the endpoint (ERR_TLS_CERT_ALTNAME_INVALID)',
    ],
    ['signed by itself', SELF_SIGNED_CERTIFICATE, 'receiver.test', 'is signed by itself'],
    ['for a name, at an address', GOOD_CERTIFICATE, '127.0.0.1', 'for other names than the name'],
  ])('with a certificate that is %s fails verification', async (_, certificate, name, message) => {
    expect(await sendOverTls(certificate, name)).toMatchObject({
      outcome: 'failure',
      failure: 'tls_verification',
      message: expect.stringContaining(message),
    });
  });

  test('older than 1.2 fails the handshake', async () => {
    const old = { minVersion: 'TLSv1', maxVersion: 'TLSv1.1', ciphers: 'DEFAULT@SECLEVEL=0' };
    expect(await sendOverTls(GOOD_CERTIFICATE, 'receiver.test', old)).toMatchObject({
      outcome: 'failure',
      failure: 'tls_handshake',
      message: expect.stringMatching(/^[a-z][^:]+ \(ERR_SSL_[A-Z0-9_]+\)$/),
    });
  });

  test('to a receiver that does not speak it fails the handshake', async () => {
    const plain = createServer((socket) => {
      socket.on('error', () => {});
      socket.once('data', () => socket.end('HTTP/1.1 400 Bad Request\r\n\r\n'));
    });
    plain.listen(0, '127.0.0.1');
    closes.push(() => void plain.close());
    await new Promise((done) => plain.once('listening', done));
    const sent = await post(
      clientOf({ resolve }),
      `https://receiver.test:${(plain.address() as AddressInfo).port}/`,
    );
    expect(sent).toMatchObject({
      outcome: 'failure',
      failure: 'tls_handshake',
      message: expect.stringMatching(/^what answers at this port does not speak TLS.*\(ERR_SSL_/),
    });
  });

  test('whose receiver goes away meanwhile is a connection that was lost, in our words', async () => {
    const leaving = createServer((socket) => {
      socket.on('error', () => {});
      socket.once('data', () => socket.end());
    });
    leaving.listen(0, '127.0.0.1');
    closes.push(() => void leaving.close());
    await new Promise((done) => leaving.once('listening', done));
    const { port } = leaving.address() as AddressInfo;
    expect(await post(clientOf({ resolve }), `https://receiver.test:${port}/`)).toMatchObject({
      outcome: 'failure',
      failure: 'connection_reset',
      message: 'the other side ended the connection before the end of its answer (ECONNRESET)',
    });
  });

  test('offers HTTP/1.1 only', async () => {
    const agreed: unknown[] = [];
    const receiver = await receiverOf(
      ({ socket }) => {
        agreed.push((socket as TLSSocket).alpnProtocol);
        socket.write(answer(200));
      },
      { key: RECEIVER_KEY, cert: GOOD_CERTIFICATE, ALPNProtocols: ['h2', 'http/1.1'] },
    );
    await post(clientOf({ resolve }), `https://receiver.test:${receiver.port}/`);
    expect(agreed).toEqual(['http/1.1']);
  });
});
