/** Deliveries through an egress proxy: the same checks, and the proxy gets addresses, not names. */
import { getCACertificates, setDefaultCACertificates } from 'node:tls';
import { beforeAll, expect, test } from 'vitest';
import { parseNetwork } from '@sluice/domain/delivery/network-address';
import { parseProxy } from '@sluice/platform/outgoing/proxy-tunnel';
import {
  AUTHORITY_CERTIFICATE,
  GOOD_CERTIFICATE,
  OTHER_NAME_CERTIFICATE,
  RECEIVER_KEY,
} from '../support/certificates.ts';
import { startConnectProxy } from '../support/connect-proxy.ts';
import { clientOf, closes, post, receiverOf, respond } from '../support/http-client-world.ts';
import { answer } from '../support/receiver.ts';

beforeAll(() => {
  const before = getCACertificates('default');
  setDefaultCACertificates([...before, AUTHORITY_CERTIFICATE]);
  return () => setDefaultCACertificates(before);
});

async function startProxy(...refusal: Parameters<typeof startConnectProxy>) {
  const proxy = await startConnectProxy(...refusal);
  closes.push(() => proxy.close());
  return proxy;
}

const resolve = async () => [{ address: '127.0.0.1', family: 4 }];

test('deliveries go to the address that the name resolved to, over one tunnel that is kept', async () => {
  const receiver = await receiverOf(respond(answer(200, 'hello')));
  const { proxy, asked } = await startProxy();
  const client = clientOf({ proxy, resolve });
  for (let request = 0; request < 2; request++) {
    expect(await post(client, `http://receiver.test:${receiver.port}/hook`)).toMatchObject({
      outcome: 'response',
      status: 200,
      body: 'hello',
    });
  }
  expect(asked).toEqual([`127.0.0.1:${receiver.port}`]);
  expect(receiver.requests[0]).toContain(`receiver.test:${receiver.port}`);
});

// The addresses of a name come in an order for our own network: IPv6 first if that network has no way out by itself.
test('deliveries go to another address of a name if the proxy has no way to the first one', async () => {
  const receiver = await receiverOf(respond(answer(200)));
  const both = [
    { address: '::1', family: 6 },
    { address: '127.0.0.1', family: 4 },
  ];
  const withoutIpv6 = await startProxy(502, 'No route', '[::1]');
  const withoutIpv4 = await startProxy(502, 'No route', '127.0.0.1');
  const url = `http://receiver.test:${receiver.port}/`;
  const post4 = await post(clientOf({ proxy: withoutIpv6.proxy, resolve: async () => both }), url);
  expect(post4).toMatchObject({ outcome: 'response', status: 200 });
  const post6 = await post(clientOf({ proxy: withoutIpv4.proxy, resolve: async () => both }), url);
  expect(post6).toMatchObject({ outcome: 'failure', failure: 'unreachable' });
  expect(withoutIpv4.asked).toEqual([`127.0.0.1:${receiver.port}`, `[::1]:${receiver.port}`]);
});

test('verify the certificate of the endpoint, not of the proxy', async () => {
  const { proxy } = await startProxy();
  for (const [cert, expected] of [
    [GOOD_CERTIFICATE, { outcome: 'response', status: 200 }],
    [OTHER_NAME_CERTIFICATE, { outcome: 'failure', failure: 'tls_verification' }],
  ] as const) {
    const receiver = await receiverOf(respond(answer(200)), { key: RECEIVER_KEY, cert });
    const sent = await post(
      clientOf({ proxy, resolve }),
      `https://receiver.test:${receiver.port}/`,
    );
    expect(sent).toMatchObject(expected);
  }
});

test('deliveries are refused before the proxy is asked if the address is not allowed', async () => {
  const { proxy, asked } = await startProxy();
  const client = clientOf({ proxy, resolve, allowPrivateAddresses: false });
  for (const host of ['receiver.test', '10.0.0.1', '[::1]', '169.254.169.254']) {
    expect(await post(client, `http://${host}/`)).toMatchObject({
      outcome: 'failure',
      failure: 'address_refused',
    });
  }
  expect(asked).toEqual([]);
});

test('deliveries are unreachable, and do not wait an hour, if the proxy refuses or is away', async () => {
  const refusing = await startProxy(403);
  const sent = await post(clientOf({ proxy: refusing.proxy, resolve }), 'http://receiver.test/');
  expect(sent).toMatchObject({
    outcome: 'failure',
    failure: 'unreachable',
    message: 'the egress proxy: it answered 403',
    status: null,
  });
  const nobody = parseProxy('http://127.0.0.1:9');
  expect(await post(clientOf({ proxy: nobody, resolve }), 'http://receiver.test/')).toMatchObject({
    outcome: 'failure',
    failure: 'unreachable',
    message: 'the egress proxy: ECONNREFUSED',
  });
});

// The message is shown to the webhook's owner, whose matter the operator's network is not.
test('the failure of a refused delivery has the status of the proxy, but not its words', async () => {
  const { proxy } = await startProxy(502, 'No way from 10.1.2.3\0');
  const sent = await post(clientOf({ proxy, resolve }), 'http://receiver.test/');
  expect(sent).toMatchObject({
    failure: 'unreachable',
    message: 'the egress proxy: it answered 502',
  });
});

// One that hangs is no fault of the endpoint, which would rest for an hour after a time-out.
test('deliveries are unreachable, before their time is over, if the proxy never answers', async () => {
  const deaf = await receiverOf(() => {});
  const sent = await post(
    clientOf({ proxy: parseProxy(`http://127.0.0.1:${deaf.port}`), resolve, timeoutMs: 2_000 }),
    'http://receiver.test/',
  );
  expect(sent).toMatchObject({
    outcome: 'failure',
    failure: 'unreachable',
    message: 'the egress proxy: no answer within 1.5 s',
  });
});

test('have their one deadline over the proxy too', async () => {
  const { proxy } = await startProxy();
  const deaf = await receiverOf(() => {});
  // Most of it is the proxy's: one that answers late is another failure.
  const timeoutMs = 4_000;
  const client = clientOf({ proxy, resolve, timeoutMs });
  const sent = await post(client, `http://receiver.test:${deaf.port}/`);
  expect(sent).toMatchObject({ outcome: 'failure', failure: 'timeout' });
  expect(sent.durationMs).toBeGreaterThanOrEqual(timeoutMs);
});

test('deliveries send user and password to the proxy', async () => {
  const receiver = await receiverOf(respond(answer(200)));
  const { port, credentials } = await startProxy();
  const proxy = parseProxy(`http://us%40er:pass@127.0.0.1:${port}`);
  await post(clientOf({ proxy, resolve }), `http://receiver.test:${receiver.port}/`);
  expect(credentials).toEqual([`Basic ${Buffer.from('us@er:pass').toString('base64')}`]);
});

test('go to a private network that is on the list, and to no other', async () => {
  const receiver = await receiverOf(respond(answer(200)));
  const allowedNetworks = ['127.0.0.0/30'].flatMap((text) => parseNetwork(text) ?? []);
  const client = clientOf({ allowPrivateAddresses: false, allowedNetworks });
  expect(await post(client, `http://127.0.0.1:${receiver.port}/`)).toMatchObject({ status: 200 });
  expect(await post(client, `http://127.0.0.5:${receiver.port}/`)).toMatchObject({
    failure: 'address_refused',
  });
});
