/** Imports that are made over HTTP from a URL or a file. Some are refused before it or in the middle of it. */
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { expectProblem } from '../../support/error-shapes.ts';
import { startApi, type ApiUnderTest } from '../support/api-under-test.ts';
import { countImports, CSV, FIELDS, form, storedFile } from '../support/import-forms.ts';

let api: ApiUnderTest;
beforeAll(async () => {
  api = await startApi();
});
afterAll(() => api.close());

const importCount = () => countImports(api.database);

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
