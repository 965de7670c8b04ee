/** TXT records, read from a real name server on this machine. */
import { createSocket, type Socket } from 'node:dgram';
import { Resolver } from 'node:dns/promises';
import { afterEach, expect, test } from 'vitest';
import {
  domainRecordName,
  domainRecordText,
  readTextRecordsBy,
} from '../../src/identity/domain-records.ts';

const servers: Socket[] = [];
afterEach(() => {
  for (const server of servers.splice(0)) server.close();
});

const NO_SUCH_NAME = 3;
const SERVER_FAILED = 2;

/** A name server that knows one name (RFC 1035 §4.1). */
async function serve(texts: readonly (readonly string[])[], status = 0) {
  const server = createSocket('udp4');
  servers.push(server);
  server.on('message', (query, { port, address }) => {
    let end = 12;
    while (query[end] !== 0) end += (query[end] ?? 0) + 1;
    const question = query.subarray(12, end + 5);
    const answers = texts.map((parts) => {
      const data = Buffer.concat(
        parts.map((part) => Buffer.concat([Buffer.from([part.length]), Buffer.from(part)])),
      );
      const head = Buffer.from([0xc0, 12, 0, 16, 0, 1, 0, 0, 0, 0, 0, 0]);
      head.writeUInt16BE(data.length, 10);
      return Buffer.concat([head, data]);
    });
    const head = Buffer.from(query.subarray(0, 12));
    head.writeUInt16BE(0x8180 | status, 2);
    head.writeUInt16BE(1, 4);
    head.writeUInt16BE(answers.length, 6);
    head.writeUInt32BE(0, 8);
    server.send(Buffer.concat([head, question, ...answers]), port, address);
  });
  await new Promise<void>((resolve) => server.bind(0, '127.0.0.1', resolve));
  const resolver = new Resolver({ timeout: 20_000, tries: 1 });
  resolver.setServers([`127.0.0.1:${server.address().port}`]);
  return readTextRecordsBy(resolver);
}

test('a record in several parts is read as one text', async () => {
  const read = await serve([['v=spf1 -all'], ['sluice-account-7=', 'abc']]);
  expect(await read(domainRecordName('acme.example'))).toEqual([
    'v=spf1 -all',
    'sluice-account-7=abc',
  ]);
});

test('a name that there is not has no records, and a server that fails is an error', async () => {
  const none = await serve([], NO_SUCH_NAME);
  expect(await none('_sluice.acme.example')).toEqual([]);
  const empty = await serve([]);
  expect(await empty('_sluice.acme.example')).toEqual([]);
  const failed = await serve([], SERVER_FAILED);
  await expect(failed('_sluice.acme.example')).rejects.toThrow('SERVFAIL');
});

test('the record of an account is its own, and the installation’s', () => {
  const text = domainRecordText('secret one', 7);
  expect(text).toMatch(/^sluice-account-7=[\da-f]{32}$/);
  expect(domainRecordText('secret one', 7)).toBe(text);
  expect(domainRecordText('secret two', 7)).not.toBe(text);
  expect(domainRecordText('secret one', 70).endsWith(text.split('=')[1] ?? '')).toBe(false);
});
