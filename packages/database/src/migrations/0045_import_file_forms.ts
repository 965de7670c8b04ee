/**
 * The declared encoding of an import's file, and its detected form.
 *
 * The form is found at the file's start (`worker/src/imports/file-form.ts`), so that it is read the same way each time
 * that reading begins again. Null: an older version began to read it, as UTF-8 with commas.
 */
import { sql, type Kysely } from 'kysely';
import type { Migration } from 'kysely/migration';

export const importFileForms: Migration = {
  async up(database: Kysely<unknown>): Promise<void> {
    await sql`
      alter table imports add column encoding text collate "C", add column file_form jsonb`.execute(
      database,
    );
  },
};
