/** Forms for the tests of imports. Also counts imports, and reads a stored file. */
import type { Database } from '@sluice/database/connection/connection';
import { sql } from 'kysely';

export const FIELDS = { name: 'Orders', type: 'event', identifier: 'email' };
export const CSV = '_svc_name,_svc_customer_id\nbought,ann@example.com\n';

/** A form as browsers and clients build it: the fields in this order, then the files. */
export async function form(fields: Record<string, string>, ...files: (string | Buffer | File)[]) {
  const data = new FormData();
  for (const [name, value] of Object.entries(fields)) data.append(name, value);
  for (const file of files)
    data.append(
      'file',
      file instanceof File ? file : new Blob([new Uint8Array(Buffer.from(file))]),
      'events.csv',
    );
  const encoded = new Response(data);
  return {
    payload: Buffer.from(await encoded.arrayBuffer()),
    headers: { 'content-type': encoded.headers.get('content-type') ?? '' },
  };
}

/** The bytes of an import's file. */
export async function storedFile(database: Database, importId: number): Promise<Buffer> {
  const { rows } = await sql<{ bytes: Buffer }>`
    select bytes from import_chunks where import_id = ${importId} order by first_byte`.execute(
    database,
  );
  return Buffer.concat(rows.map(({ bytes }) => bytes));
}

export async function countImports(database: Database): Promise<number> {
  const { rows } = await sql<{ count: string }>`select count(*) from imports`.execute(database);
  return Number(rows[0]?.count);
}
