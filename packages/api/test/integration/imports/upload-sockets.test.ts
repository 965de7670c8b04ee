/** Files that come over a socket: whole, cut by their sender, or with a key that is revoked meanwhile. */
import { once } from 'node:events';
import { connect } from 'node:net';
import { sql } from 'kysely';
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest';
import { listen } from '../../../src/server.ts';
import { startApi, type ApiUnderTest } from '../support/api-under-test.ts';
import { insertTenant } from '../support/inserted-rows.ts';
import { countImports, FIELDS, form, storedFile } from '../support/import-forms.ts';

let api: ApiUnderTest;
beforeAll(async () => {
  api = await startApi();
});
afterAll(() => api.close());

const importCount = () => countImports(api.database);

describe('on a socket', () => {
  let port: number;
  beforeAll(async () => {
    port = await listen(api.app, '127.0.0.1', 0);
  });

  // A request is closed once its last byte was read, which may be before its file is kept.
  test.each([0, 1, 100_000, 3_000_000])('a file of %i bytes is taken whole', async (sizeBytes) => {
    const file = 'x'.repeat(sizeBytes);
    const { payload, headers } = await form(FIELDS, file);
    const answer = await fetch(`http://127.0.0.1:${port}/v1/imports`, {
      method: 'POST',
      headers: { ...headers, authorization: `Bearer ${api.a.key}` },
      body: new Uint8Array(payload),
    });
    const made = (await answer.json()) as { import: { id: number } };
    expect(made).toMatchObject({ import: { state: 'preprocessed' } });
    expect((await storedFile(api.database, made.import.id)).toString()).toBe(file);
  });

  const beginUpload = async (key: string) => {
    const { payload, headers } = await form(FIELDS, Buffer.alloc(3_000_000, 'a'));
    const socket = connect(port, '127.0.0.1');
    // A refused file may be cut with a reset, after its answer.
    socket.on('error', () => undefined);
    await once(socket, 'connect');
    socket.write(
      `POST /v1/imports HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${key}\r\nContent-Type: ${headers['content-type']}\r\nContent-Length: ${payload.length}\r\n\r\n`,
    );
    socket.write(payload.subarray(0, 2_500_000));
    return { socket, rest: payload.subarray(2_500_000) };
  };

  test('a sender that vanishes in the middle of a file leaves no import behind', async () => {
    const before = await importCount();
    const { socket } = await beginUpload(api.a.key);
    await vi.waitFor(async () => expect(await importCount()).toBe(before + 1), 20_000);
    socket.destroy();
    await vi.waitFor(async () => expect(await importCount()).toBe(before), 20_000);
  });

  // Security: a file may come for hours, and its rows become events.
  test('a key that is revoked in the middle of its file is refused, and the import is removed', async () => {
    const { key, accountId } = await insertTenant(api.database, 'key_of_revoked_importer');
    const before = await importCount();
    const { socket, rest } = await beginUpload(key);
    await vi.waitFor(async () => expect(await importCount()).toBe(before + 1), 20_000);
    await sql`update api_credentials set revoked_at = now() where account_id = ${accountId}`.execute(
      api.database,
    );
    socket.write(rest);
    const [answer] = (await once(socket, 'data')) as [Buffer];
    expect(answer.toString()).toMatch(/^HTTP\/1\.1 401 [^]*www-authenticate: Bearer/);
    await vi.waitFor(async () => expect(await importCount()).toBe(before), 20_000);
    socket.destroy();
  });
});
