/** Rows of very many cells: their file is refused before they take memory. */
import { expect, test } from 'vitest';
import { findFileForm } from '../../src/imports/file-form.ts';
import { readCsv, type CsvRecord } from '../../src/imports/read-csv.ts';

const NAMES = '_svc_name,_svc_customer_id\n';
const PIECE_SIZE_BYTES = 1_048_576;

/** The records of a file that is its start and then so many pieces. Counts the pieces that are read. */
function readEndless(start: string, piece: string, pieceCount: number) {
  const read = { pieceCount: 0 };
  const bytes = Buffer.from(piece);
  async function* open() {
    yield Buffer.from(start);
    for (; read.pieceCount < pieceCount; read.pieceCount++) yield bytes;
  }
  const records = async (): Promise<CsvRecord[]> => {
    const found: CsvRecord[] = [];
    const form = findFileForm(Buffer.from(start), undefined);
    for await (const record of readCsv(open, form, { byte: 0, row: 1 })) found.push(record);
    return found;
  };
  return { read, records };
}

// A cell takes 8 bytes, and the parser has no bound for them: 500 MB of commas ended each worker that read them.
test.each([
  ['in one line', ','.repeat(PIECE_SIZE_BYTES), 'a line is longer than 8388608 bytes'],
  [
    'in lines within quotes',
    `${','.repeat(PIECE_SIZE_BYTES - 4)}"\n",`,
    'row 3: it has more than 16384 cells, which is the limit of a row',
  ],
])('a row of endless empty cells is refused soon: %s', async (_, piece, fault) => {
  const { read, records } = readEndless(`${NAMES}a,b\n`, piece, 60);
  await expect(records()).rejects.toThrow(fault);
  expect(read.pieceCount).toBeLessThan(20);
});

test('a line of names of too many cells is refused with its row', async () => {
  const { records } = readEndless(`${NAMES.trim()}${','.repeat(16_383)}\n`, 'a,b\n', 1);
  await expect(records()).rejects.toThrow('row 1: it has more than 16384 cells');
});

test('a row of as many cells as a spreadsheet has is read', async () => {
  const { records } = readEndless(NAMES, `a${','.repeat(16_383)}\n`, 3);
  expect((await records()).map(({ cells }) => cells.length)).toEqual([2, 16_384, 16_384, 16_384]);
});
