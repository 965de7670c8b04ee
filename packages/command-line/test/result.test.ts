/** `--output`, `--columns`, times, and the width of a terminal. */
import { expect, test } from 'vitest';
import { documentWriter, writeFields, writeRows, writeText } from '../src/output/result.ts';
import { yamlLines } from '../src/output/yaml.ts';
import type { OutputFormat } from '../src/output/terminal.ts';
import { collectingTerminal } from './collecting-terminal.ts';

const ROWS = [
  { id: 1, name: 'a, "b"\n', created_at: 1_795_628_230, more: { deep: [1] } },
  { id: 2, name: null, created_at: 1_795_628_230, more: {} },
];
const NOW_MS = (1_795_628_230 + 3_540) * 1_000;

test('rows are exact as documents, and tables for people show times with their age', () => {
  const linesOf = (format: 'table' | 'json' | 'csv', columns?: string[]): string[] => {
    const terminal = collectingTerminal(format, { columns, now: () => NOW_MS });
    writeRows(terminal, ROWS, ['id', 'name', 'created_at'], 'none');
    return terminal.lines;
  };
  expect(JSON.parse(linesOf('json').join(''))).toEqual(ROWS);
  expect(linesOf('json', ['name', 'id'])).toEqual([
    String.raw`[{"name":"a, \"b\"\n","id":1},{"name":null,"id":2}]`,
  ]);
  expect(linesOf('csv')).toEqual([
    'id,name,created_at',
    String.raw`1,"a, ""b""\u000a",1795628230`,
    '2,,1795628230',
  ]);
  expect(linesOf('table')).toEqual(
    [
      String.raw`id  name            created_at`,
      String.raw`1   a, "b"\u000a  2026-11-25 17:37:10 UTC (59 min ago)`,
      String.raw`2   -             2026-11-25 17:37:10 UTC (59 min ago)`,
    ].map((line, index) => (index === 0 ? 'id  name          created_at' : line)),
  );
  expect(linesOf('table', ['more'])).toEqual(['more', '{"deep":[1]}', '-']);
});

// Security: CSV injection. The id of a person is a text of its sender.
test('a cell of CSV that begins like a formula is text in a spreadsheet', () => {
  const terminal = collectingTerminal('csv');
  const rows = [{ id: '=HYPERLINK("http://a.example","b")' }, { id: '＝1+1' }, { id: -4.2 }];
  writeRows(terminal, rows, ['id'], 'none');
  writeFields(terminal, { '@id': '+1', other: '\u001b' });
  expect(terminal.lines).toEqual([
    'id',
    `"'=HYPERLINK(""http://a.example"",""b"")"`,
    "'＝1+1",
    '-4.2',
    "'@id,other",
    String.raw`'+1,\u001b`,
  ]);
});

test('numbers, ISO times and milliseconds are times by the names of their members alone', () => {
  const terminal = collectingTerminal('table', { now: () => NOW_MS });
  writeFields(terminal, {
    next_probe_at: (NOW_MS + 7_200_000) / 1_000,
    criteria: { since: 1_795_628_230, until: 1_795_631_770 },
    at_ms: NOW_MS,
    occurred_at: '2026-11-25T17:37:10.959Z',
    count: 1_795_628_230,
    looked_at: 'soon',
    format: 1,
  });
  expect(terminal.lines).toEqual([
    'next_probe_at: 2026-11-25 20:36:10 UTC (in 2 h)',
    'criteria:',
    '  since: 2026-11-25 17:37:10 UTC (59 min ago)',
    '  until: 2026-11-25 18:36:10 UTC (now)',
    'at_ms: 2026-11-25 18:36:10 UTC (now)',
    'occurred_at: 2026-11-25 17:37:10 UTC (59 min ago)',
    'count: 1795628230',
    'looked_at: soon',
    'format: 1',
  ]);
});

test('an unknown column is reported with the existing ones, and an empty list shows its own text', () => {
  const terminal = collectingTerminal('table', { columns: ['nmae'] });
  expect(() => writeRows(terminal, ROWS, ['id'], '')).toThrow(
    'there is no column nmae; there are id, name, created_at, more',
  );
  writeRows(terminal, [], ['id'], 'no webhook yet');
  expect(terminal.lines).toEqual(['no webhook yet']);
});

test('the widest columns give way, until a row fits on the terminal', () => {
  const terminal = collectingTerminal('table', { width: 40 });
  writeRows(
    terminal,
    [{ id: 1, name: 'x'.repeat(60), endpoint: 'y'.repeat(30) }],
    ['id', 'name', 'endpoint'],
    '',
  );
  for (const line of terminal.lines) expect(line.length).toBeLessThanOrEqual(40);
  expect(terminal.lines[1]).toMatch(/^1 {3}x{10,}… +y{10,}…$/);
});

// The columns below were shifted by a name in such letters, and its row went on in the next line of the terminal.
test('letters of two columns take two, and a row that is cut has no half of one', () => {
  const terminal = collectingTerminal('table', { width: 24 });
  const rows = [
    { name: '注文の通知', state: 'ok' },
    { name: '🚚🚚🚚🚚🚚🚚🚚🚚', state: 'ok' },
    { name: 'ｱﾝ👩‍👩‍👧é', state: 'failing for a long time' },
  ];
  writeRows(terminal, rows, ['name', 'state'], '');
  expect(terminal.lines).toEqual([
    'name         state',
    '注文の通知   ok',
    '🚚🚚🚚🚚🚚…  ok',
    'ｱﾝ👩‍👩‍👧é        failing fo…',
  ]);
});

test('a stream is a line of CSV each below one head, or a document of YAML each', () => {
  const csv = collectingTerminal('csv');
  const writeCsv = documentWriter(csv, ['a', 'b']);
  writeCsv?.({ b: 1, a: 'x' });
  writeCsv?.({ a: [1] });
  expect(csv.lines).toEqual(['a,b', 'x,1', '[1],']);
  const yaml = collectingTerminal('yaml');
  documentWriter(yaml, [])?.({ a: 1 });
  expect(yaml.lines).toEqual(['---', 'a: 1']);
  expect(documentWriter(collectingTerminal('table'), [])).toBeUndefined();
});

test('YAML quotes a text that looks like another value', () => {
  const value = {
    word: 'plain words',
    yes: 'yes',
    number: '12',
    colon: 'a: b',
    empty: '',
    control: '\u001B[2J',
    real: 12,
    none: null,
    list: ['a', { b: [1, 2], c: {} }, []],
  };
  expect(yamlLines(value)).toEqual([
    'word: plain words',
    '"yes": "yes"',
    'number: "12"',
    'colon: "a: b"',
    'empty: ""',
    String.raw`control: "\u001b[2J"`,
    'real: 12',
    'none: null',
    'list:',
    '  - a',
    '  - b:',
    '      - 1',
    '      - 2',
    '    c: {}',
    '  - []',
  ]);
});

test('a text is shown as it came, and on a terminal it cannot control it', () => {
  const text = 'id\tname\r\n1\t"a\u001b[2J"\r\n';
  const linesOf = (format: OutputFormat): string[] => {
    const terminal = collectingTerminal(format);
    writeText(terminal, text);
    return terminal.lines;
  };
  expect(linesOf('table')).toEqual(['id\tname', String.raw`1${'\t'}"a\u001b[2J"`]);
  expect(linesOf('csv')).toEqual([text.slice(0, -2)]);
  expect(linesOf('json').map((line) => JSON.parse(line) as unknown)).toEqual([text]);
});
