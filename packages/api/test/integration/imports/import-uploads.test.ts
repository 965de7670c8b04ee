/** Imports that are made over HTTP from a URL or a file. Some are refused before it or in the middle of it. */
import { once } from 'node:events';
import { connect } from 'node:net';
import { sql } from 'kysely';
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest';
import { listen } from '../../../src/server.ts';
import { expectProblem } from '../../support/error-shapes.ts';
import {
  insertTenant,
  startApi,
  type ApiUnderTest,
  type Tenant,
} from '../support/api-under-test.ts';
import { CSV, FIELDS, form, storedFile } from '../support/import-forms.ts';

let api: ApiUnderTest;
beforeAll(async () => {
  api = await startApi();
});
afterAll(() => api.close());

const importCount = async (): Promise<number> => {
  const { rows } = await sql<{ count: string }>`select count(*) from imports`.execute(api.database);
  return Number(rows[0]?.count);
};

describe('making an import', () => {
  test('from a URL waits for a worker to fetch it', async () => {
    const answer = await api.call('POST', '/v1/imports', {
      body: {
        import: {
          ...FIELDS,
          data_file_url: 'https://files.example/a.csv',
          description: 'all of it',
        },
      },
    });
    expect(answer.statusCode).toBe(200);
    const made = answer.json().import;
    expect(made).toEqual({
      ...FIELDS,
      id: expect.any(Number),
      description: 'all of it',
      object_type_id: null,
      data_to_process: 'all',
      encoding: null,
      state: 'preprocessing',
      percent: 0,
      rows_to_import: null,
      rows_read: 0,
      rows_imported: 0,
      rows_failed: 0,
      rows_with_warnings: 0,
      error: null,
      errors_url: `/v1/imports/${made.id}/errors`,
      warnings_url: `/v1/imports/${made.id}/warnings`,
      created_at: Math.floor(api.clock.nowMs / 1000),
      updated_at: Math.floor(api.clock.nowMs / 1000),
    });
    const read = await api.call('GET', `/v1/imports/${made.id}`);
    expect(read.json().import).toEqual(made);
  });

  test('keeps the given encoding, or else the charset of the file', async () => {
    const said = await form({ ...FIELDS, encoding: 'windows-1252' }, CSV);
    const answer = await api.call('POST', '/v1/imports', said);
    expect(answer.json().import).toMatchObject({ encoding: 'windows-1252' });
    for (const [type, encoding] of [
      ['text/csv; charset=iso-8859-15', 'iso-8859-15'],
      ['text/csv;charset="shift_jis"', 'shift_jis'],
      ['text/csv', null],
    ] as const) {
      const typed = await form(FIELDS, new File([CSV], 'a.csv', { type }));
      const made = await api.call('POST', '/v1/imports', typed);
      expect(made.json().import).toMatchObject({ encoding });
    }
  });

  test('with an unknown encoding is refused with the field named', async () => {
    for (const body of [
      await form({ ...FIELDS, encoding: 'klingon' }, CSV),
      await form(FIELDS, new File([CSV], 'a.csv', { type: 'text/csv; charset=klingon' })),
    ]) {
      const { errors } = expectProblem(
        await api.call('POST', '/v1/imports', body),
        400,
        'invalid_request',
      );
      expect(errors[0]).toMatchObject({ field: 'encoding' });
    }
  });

  test('from a file of several megabytes keeps it byte for byte', async () => {
    const file = Buffer.from(CSV + 'x,y@example.com\n'.repeat(200_000));
    const answer = await api.call('POST', '/v1/imports', await form(FIELDS, file));
    expect(answer.statusCode).toBe(200);
    const { id, state } = answer.json().import;
    expect(state).toBe('preprocessed');
    expect((await storedFile(api.database, id)).equals(file)).toBe(true);
  });

  test.each([
    ['a name', { type: 'event', identifier: 'id' }, 'name'],
    ['its kind', { name: 'a', identifier: 'id' }, 'type'],
    ['a kind that there is', { name: 'a', type: 'people', identifier: 'id' }, 'type'],
    [
      'an identifier that there is',
      { name: 'a', type: 'event', identifier: 'phone' },
      'identifier',
    ],
  ])(
    'without %s is refused with the field named, and stores no import',
    async (_what, fields, field) => {
      const before = await importCount();
      const asForm = await api.call('POST', '/v1/imports', await form(fields, CSV));
      const { errors } = expectProblem(asForm, 400, 'invalid_request');
      expect(errors[0]).toMatchObject({ field, source: { pointer: `/${field}` } });
      const asJson = await api.call('POST', '/v1/imports', {
        body: { import: { ...fields, data_file_url: 'https://files.example/a.csv' } },
      });
      const { errors: errorsOfJson } = expectProblem(asJson, 400, 'invalid_request');
      expect(errorsOfJson[0]).toMatchObject({
        field: `import.${field}`,
        reason: errors[0]?.reason,
        message: `import.${errors[0]?.message}`,
      });
      expect(await importCount()).toBe(before);
    },
  );

  test.each(['ftp://files.example/a.csv', 'files.example/a.csv', 'https://me:pw@files.example/a'])(
    'from %s is refused',
    async (url) => {
      const answer = await api.call('POST', '/v1/imports', {
        body: { import: { ...FIELDS, data_file_url: url } },
      });
      expectProblem(answer, 400, 'invalid_request');
    },
  );

  test('without a file, with no boundary, or with a form that breaks off is refused', async () => {
    const before = await importCount();
    expectProblem(
      await api.call('POST', '/v1/imports', await form(FIELDS)),
      400,
      'invalid_request',
    );
    const noBoundary = { payload: 'x', headers: { 'content-type': 'multipart/form-data' } };
    expectProblem(await api.call('POST', '/v1/imports', noBoundary), 400, 'invalid_request');
    const { payload, headers } = await form(FIELDS, CSV);
    for (let length = 0; length < payload.length - 4; length++) {
      const cut = { payload: payload.subarray(0, length), headers };
      expectProblem(await api.call('POST', '/v1/imports', cut), 400, 'invalid_request');
    }
    expect(await importCount()).toBe(before);
  });

  // A caller who gets a 200 must not have to find out that half of it was left out.
  test.each([
    ['two files', FIELDS, [CSV, CSV]],
    [
      'more fields than it may have',
      { ...FIELDS, ...Object.fromEntries(Array.from({ length: 18 }, (_, n) => [`x${n}`, 'x'])) },
      [CSV],
    ],
  ])('from a form with %s is refused and stores no import', async (_what, fields, files) => {
    const before = await importCount();
    const answer = await api.call('POST', '/v1/imports', await form(fields, ...files));
    expectProblem(answer, 400, 'invalid_request');
    expect(answer.json().detail).toMatch(/one file|20 fields/);
    expect(await importCount()).toBe(before);
  });

  test('from a form with a field after the file is refused and stores no import', async () => {
    const before = await importCount();
    const { payload, headers } = await form(FIELDS, CSV);
    const boundary = payload.subarray(0, payload.indexOf('\r\n')).toString();
    const field = `${boundary}\r\nContent-Disposition: form-data; name="description"\r\n\r\nof May\r\n${boundary}--\r\n`;
    const end = payload.lastIndexOf(boundary);
    const late = Buffer.concat([payload.subarray(0, end), Buffer.from(field)]);
    const answer = await api.call('POST', '/v1/imports', { payload: late, headers });
    expectProblem(answer, 400, 'invalid_request');
    expect(answer.json().detail).toBe('send the fields before the file');
    expect(await importCount()).toBe(before);
  });

  test('of a file past the limit is refused in the middle and stores no import', async () => {
    const before = await importCount();
    const answer = await api.call(
      'POST',
      '/v1/imports',
      await form(FIELDS, Buffer.alloc(11_000_000, 'a')),
    );
    expectProblem(answer, 413, 'body_too_large');
    expect(await importCount()).toBe(before);
  });
});

// All workspaces share one Postgres: files that wait to be imported must not fill it.
describe('a workspace whose imports do not end', () => {
  /** As many as are wanted, in workspace `environmentId`. */
  const insertUnfinished = async (environmentId: number, count: number, sizeBytes: number) => {
    const now = new Date(api.clock.nowMs);
    await sql`
      insert into imports (environment_id, name, identifier, data_to_process, state, size_bytes, created_at, updated_at)
      select ${environmentId}::int, 'waits', 'id', 'all', 'preprocessed', ${sizeBytes}::bigint, ${now}::timestamptz, ${now}::timestamptz
        from generate_series(1, ${count}::int)`.execute(api.database);
  };
  const post = async (tenant: Tenant) => {
    const body = { import: { ...FIELDS, data_file_url: 'https://files.example/a.csv' } };
    return api.call('POST', '/v1/imports', { key: tenant.key, body });
  };
  let tenantCount = 0;
  const newTenant = () => insertTenant(api.database, `key_of_importer_${++tenantCount}`);

  test('gets no further one past as many as it may have, until one is cancelled; others do', async () => {
    const tenant = await newTenant();
    await insertUnfinished(tenant.environmentId, 98, 0);
    const last = (await post(tenant)).json().import;
    const [one, other] = await Promise.all([post(tenant), post(tenant)]);
    expect(new Set([one.statusCode, other.statusCode])).toEqual(new Set([200, 409]));
    const refused = one.statusCode === 409 ? one : other;
    expectProblem(refused, 409, 'limit_reached');
    expect(refused.json().meta.limit).toBe(100);
    expect(refused.json().detail).toMatch(/cancel one/);
    const before = await importCount();
    const asForm = { ...(await form(FIELDS, CSV)), key: tenant.key };
    expectProblem(await api.call('POST', '/v1/imports', asForm), 409, 'limit_reached');
    expect(await importCount()).toBe(before);
    expect((await post(await newTenant())).statusCode).toBe(200);

    await api.call('POST', `/v1/imports/${last.id}/cancel`, { key: tenant.key });
    expect((await api.call('POST', '/v1/imports', asForm)).statusCode).toBe(200);
  });

  test('beyond its share of the storage gets no further file, while another one does', async () => {
    const [tenant, other] = [await newTenant(), await newTenant()];
    const before = await importCount();
    await insertUnfinished(tenant.environmentId, 1, 7.5e11);
    const file = await form(FIELDS, Buffer.alloc(2_000_000, 'a'));
    const refused = await api.app.inject({
      method: 'POST',
      url: '/v1/imports',
      ...file,
      headers: { ...file.headers, authorization: `Bearer ${tenant.key}` },
    });
    expectProblem(refused, 503, 'unavailable');
    expect(refused.headers['retry-after']).toBeDefined();
    expect(await importCount()).toBe(before + 1);
    const taken = await api.call('POST', '/v1/imports', { ...file, key: other.key });
    expect(taken.statusCode).toBe(200);
    await sql`delete from imports where environment_id = ${tenant.environmentId}`.execute(
      api.database,
    );
  });

  test('gets 409 for a file past the total size of its imports, and stores no part of it', async () => {
    const tenant = await newTenant();
    await insertUnfinished(tenant.environmentId, 4, 5_000_000);
    const before = await importCount();
    const file = { ...(await form(FIELDS, Buffer.alloc(6_000_000, 'a'))), key: tenant.key };
    const refused = await api.call('POST', '/v1/imports', file);
    expectProblem(refused, 409, 'limit_reached');
    expect(refused.json().meta.limit).toBe(25_000_000);
    expect(refused.json().detail).toMatch(/25000000 bytes together.*cancel one/);
    expect(await importCount()).toBe(before);
    expect((await api.call('POST', '/v1/imports', { ...file, key: api.b.key })).statusCode).toBe(
      200,
    );

    await sql`update imports set state = 'imported' where environment_id = ${tenant.environmentId}`.execute(
      api.database,
    );
    expect((await api.call('POST', '/v1/imports', file)).statusCode).toBe(200);
  });
});

describe('a file that is sent again with the same Idempotency-Key', () => {
  const send = async (
    idempotencyKey: string,
    file = CSV,
    fields: Record<string, string> = FIELDS,
  ) => {
    const { payload, headers } = await form(fields, file);
    const sent = { payload, headers: { ...headers, 'idempotency-key': idempotencyKey } };
    return api.call('POST', '/v1/imports', sent);
  };

  test('I38: is the same import, and the second file is not stored', async () => {
    const first = await send('again');
    const before = await importCount();
    const again = await send('again');
    expect(again.headers['idempotent-replayed']).toBe('true');
    expect(again.body).toBe(first.body);
    expect(await importCount()).toBe(before);
  });

  test.each([
    ['file', CSV.replace('ann', 'bob'), FIELDS],
    ['description', CSV, { ...FIELDS, description: 'another' }],
  ])('I38: with another %s is 422 and is not stored', async (what, file, fields) => {
    await send(`other-${what}`);
    const before = await importCount();
    const other = await send(`other-${what}`, file, fields);
    expectProblem(other, 422, 'idempotency_key_reused');
    expect(await importCount()).toBe(before);
  });

  test('I38: is not imported twice if the process died before its answer', async () => {
    const first = await send('died');
    // The import is under way, its answer was never kept.
    await sql`
      update idempotency_keys set answer = null, locked_until = ${new Date(api.clock.nowMs)}
       where started_at = (select max(started_at) from idempotency_keys)`.execute(api.database);
    const before = await importCount();
    const again = await send('died');
    expect(again.headers['idempotent-replayed']).toBeUndefined();
    expect(again.body).toBe(first.body);
    expect(await importCount()).toBe(before);
  });
});

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
