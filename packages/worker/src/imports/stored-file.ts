/**
 * The stored file of an import: its bytes, its start, and its records from any place on.
 *
 * `database/src/imports/import-chunks.ts` writes it. `read-csv.ts` reads it, and `run-import.ts` reads through it.
 */
import type { DatabaseOrTransaction } from '@sluice/database/connection/connection';
import { readImportChunk } from '@sluice/database/imports/import-chunks';
import type { FileForm, ImportKey } from '@sluice/database/imports/imports';
import { FORM_SIZE_BYTES } from './file-form.ts';
import { readCsv, type CsvRecord, type ReadFrom, type WrongBytes } from './read-csv.ts';

export class StoredFile {
  readonly #database: DatabaseOrTransaction;
  readonly #key: ImportKey;

  constructor(database: DatabaseOrTransaction, key: ImportKey) {
    this.#database = database;
    this.#key = key;
  }

  /** The bytes that show the form of the file: the first `FORM_SIZE_BYTES`, or all of a shorter file. */
  async start(): Promise<Buffer> {
    const pieces: Buffer[] = [];
    let sizeBytes = 0;
    for await (const piece of this.#bytesFrom(0)) {
      pieces.push(piece);
      sizeBytes += piece.length;
      if (sizeBytes >= FORM_SIZE_BYTES) break;
    }
    return Buffer.concat(pieces).subarray(0, FORM_SIZE_BYTES);
  }

  /**
   * @param beforePiece - called before each piece of the file is read; its error ends the records.
   * @throws CsvFault
   */
  records(
    form: FileForm,
    from: ReadFrom,
    wrongBytes: WrongBytes,
    beforePiece: () => Promise<void> | undefined,
  ): AsyncIterable<CsvRecord> {
    return readCsv((byte) => this.#bytesFrom(byte, beforePiece), form, from, wrongBytes);
  }

  async *#bytesFrom(
    fromByte: number,
    beforePiece?: () => Promise<void> | undefined,
  ): AsyncGenerator<Buffer, void, undefined> {
    for (let at = fromByte; ;) {
      await beforePiece?.();
      const bytes = await readImportChunk(this.#database, this.#key, at);
      if (bytes === undefined) return;
      yield bytes;
      at += bytes.length;
    }
  }
}
