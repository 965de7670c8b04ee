/** A client certificate and a private authority over real TLS: who is trusted, who is known, and which connections are shared. */
import {
  CLIENT_AUTHORITY,
  CLIENT_ONE_CERTIFICATE,
  CLIENT_ONE_KEY,
  CLIENT_TWO_CERTIFICATE,
  CLIENT_TWO_KEY,
  PRIVATE_AUTHORITY,
  SERVER_CERTIFICATE,
  SERVER_KEY,
} from '@sluice/platform/testing/client-certificates';
import { generateKeyPairSync } from 'node:crypto';
import type { TLSSocket } from 'node:tls';
import { expect, test } from 'vitest';
import type { HttpClient } from '../../src/http/http-client.ts';
import { tlsFailureMessage } from '../../src/http/tls-failure.ts';
import { tlsIdentity, type TlsIdentity } from '@sluice/platform/outgoing/tls-identity';
import { startConnectProxy } from '../support/connect-proxy.ts';
import { clientOf, closes, receiverOf } from '../support/http-client-world.ts';
import { answer, type Receiver } from '../support/receiver.ts';

const TIMEOUT_MS = 5_000;
const SERVER = { cert: SERVER_CERTIFICATE, key: SERVER_KEY };
/** Refuses who has no certificate of the clients' authority. */
const DEMANDING = { ...SERVER, ca: CLIENT_AUTHORITY, requestCert: true, rejectUnauthorized: true };

const identityOf = (changes: Partial<Omit<TlsIdentity, 'key'>> = {}) =>
  tlsIdentity({
    certificate: undefined,
    privateKey: undefined,
    authority: PRIVATE_AUTHORITY,
    trustsPublic: false,
    ...changes,
  });
const ONE = identityOf({ certificate: CLIENT_ONE_CERTIFICATE, privateKey: CLIENT_ONE_KEY });
const TWO = identityOf({ certificate: CLIENT_TWO_CERTIFICATE, privateKey: CLIENT_TWO_KEY });
const NOBODY = identityOf();

/** A receiver that remembers, of each request, whose certificate its connection has and which connection it is. */
async function demandingReceiver(tls: object = DEMANDING) {
  const clients: string[] = [];
  const sockets: unknown[] = [];
  const receiver = await receiverOf(({ socket }) => {
    const { subject } = (socket as TLSSocket).getPeerCertificate();
    clients.push((subject as { CN?: string } | undefined)?.CN ?? 'nobody');
    sockets.push(socket);
    socket.write(answer(200));
  }, tls);
  return { ...receiver, clients, sockets };
}

const send = (client: HttpClient, { url }: Pick<Receiver, 'url'>, tls: TlsIdentity | undefined) =>
  client.post({ endpoint: url, headers: {}, body: '{}', tls });
const client = () => clientOf({ timeoutMs: TIMEOUT_MS });

test('an endpoint that demands a client certificate gets the one of the webhook', async () => {
  const receiver = await demandingReceiver();
  expect(await send(client(), receiver, ONE)).toMatchObject({ outcome: 'response', status: 200 });
  expect(receiver.clients).toEqual(['client one']);
});

test('without a certificate the attempt fails, and the message names the missing certificate', async () => {
  const receiver = await demandingReceiver();
  expect(await send(client(), receiver, NOBODY)).toMatchObject({
    outcome: 'failure',
    failure: 'tls_handshake',
    message: expect.stringContaining('asks for a client certificate'),
  });
  expect(receiver.clients).toEqual([]);
});

test('a certificate that the endpoint does not accept fails the attempt', async () => {
  const receiver = await demandingReceiver({ ...DEMANDING, ca: PRIVATE_AUTHORITY });
  // A server of Node hangs up; others send the reason.
  expect(await send(client(), receiver, ONE)).toMatchObject({ outcome: 'failure', status: null });
  expect(receiver.clients).toEqual([]);
});

test('a key that was stored before keys had a bound is not used, and the message names the bound', async () => {
  const receiver = await demandingReceiver();
  const { privateKey } = generateKeyPairSync('rsa', {
    modulusLength: 4_104,
    publicKeyEncoding: { type: 'spki', format: 'pem' },
    privateKeyEncoding: { type: 'pkcs8', format: 'pem' },
  });
  const large = identityOf({ certificate: CLIENT_ONE_CERTIFICATE, privateKey });
  expect(await send(client(), receiver, large)).toMatchObject({
    outcome: 'failure',
    failure: 'tls_handshake',
    message: 'the key of the client certificate has more than 4,096 bits (ERR_TLS_KEY_TOO_LARGE)',
  });
  expect(receiver.clients).toEqual([]);
});

test.each([
  ['ERR_SSL_TLSV1_ALERT_UNKNOWN_CA', 'does not know the authority of the client certificate'],
  ['ERR_SSL_TLSV13_ALERT_CERTIFICATE_REQUIRED', 'asks for a client certificate'],
  ['ERR_SSL_SSLV3_ALERT_CERTIFICATE_EXPIRED', 'the client certificate has expired'],
])('the reason of a server that refuses is quoted in a sentence: %s', (code, sentence) => {
  expect(tlsFailureMessage(code, false)).toContain(sentence);
});

// Security: a connection on which one webhook has proved itself must not carry requests of another.
test('webhooks with different certificates, or without one, never share a connection to one host', async () => {
  const receiver = await demandingReceiver({ ...DEMANDING, rejectUnauthorized: false });
  const shared = client();
  const identities = [ONE, TWO, NOBODY];
  for (let round = 0; round < 3; round++)
    for (const identity of identities)
      expect(await send(shared, receiver, identity)).toMatchObject({ status: 200 });
  expect(receiver.clients).toEqual([1, 2, 3].flatMap(() => ['client one', 'client two', 'nobody']));
  // Each kept its own, and used it again.
  expect(new Set(receiver.sockets).size).toBe(3);
  expect(receiver.connectionCount()).toBe(3);
  expect(shared.idleConnections()).toBe(3);

  // Side by side, too.
  await Promise.all([ONE, TWO, ONE, TWO].map((identity) => send(shared, receiver, identity)));
  const names = new Map<unknown, Set<string>>();
  for (const [place, socket] of receiver.sockets.entries())
    names.set(socket, (names.get(socket) ?? new Set()).add(receiver.clients[place] ?? ''));
  expect([...names.values()].map(({ size }) => size)).toEqual([...names].map(() => 1));
});

test('the same certificate with another authority has a connection of its own', async () => {
  const receiver = await demandingReceiver();
  const shared = client();
  await send(shared, receiver, ONE);
  const other = identityOf({
    certificate: CLIENT_ONE_CERTIFICATE,
    privateKey: CLIENT_ONE_KEY,
    authority: `${PRIVATE_AUTHORITY}${CLIENT_AUTHORITY}`,
  });
  await send(shared, receiver, other);
  expect(receiver.connectionCount()).toBe(2);
  // A copy of the first is the first.
  await send(shared, receiver, ONE && { ...ONE });
  expect(receiver.connectionCount()).toBe(2);
});

test('a private authority is trusted by the webhook that names it, and by no other request', async () => {
  const receiver = await demandingReceiver(SERVER);
  const shared = client();
  expect(await send(shared, receiver, NOBODY)).toMatchObject({ status: 200 });
  expect(await send(shared, receiver, undefined)).toMatchObject({
    outcome: 'failure',
    failure: 'tls_verification',
  });
  expect(receiver.clients).toHaveLength(1);
});

test('a named authority takes the place of the others: a certificate of another one is refused', async () => {
  const receiver = await demandingReceiver(SERVER);
  const pinned = identityOf({ authority: CLIENT_AUTHORITY });
  expect(await send(client(), receiver, pinned)).toMatchObject({
    outcome: 'failure',
    failure: 'tls_verification',
  });
  expect(receiver.clients).toEqual([]);
});

test('a private authority is trusted beside the well-known ones if both are wanted', async () => {
  const receiver = await demandingReceiver(SERVER);
  const both = identityOf({ trustsPublic: true });
  expect(await send(client(), receiver, both)).toMatchObject({ status: 200 });
});

test('through an egress proxy the certificate is the same', async () => {
  const receiver = await demandingReceiver();
  const proxy = await startConnectProxy();
  closes.push(() => proxy.close());
  const through = clientOf({ timeoutMs: TIMEOUT_MS, proxy: proxy.proxy });
  expect(await send(through, receiver, TWO)).toMatchObject({ status: 200 });
  expect(receiver.clients).toEqual(['client two']);
});

test('a key of another certificate fails the attempt, and other webhooks still send', async () => {
  const receiver = await demandingReceiver();
  const wrong = identityOf({ certificate: CLIENT_ONE_CERTIFICATE, privateKey: CLIENT_TWO_KEY });
  const shared = client();
  expect(await send(shared, receiver, wrong)).toMatchObject({
    outcome: 'failure',
    failure: 'tls_handshake',
  });
  expect(await send(shared, receiver, ONE)).toMatchObject({ status: 200 });
});
