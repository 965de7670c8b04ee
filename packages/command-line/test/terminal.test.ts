/** Security: an attacker's text in an event, or to `listen`, is printed and does not drive the terminal. */
import { expect, onTestFinished, test } from 'vitest';
import { listen } from '../src/live/listen.ts';
import { writeFields, writeRows } from '../src/output/result.ts';
import { OUTPUT_FORMATS, type Terminal, withinRow } from '../src/output/terminal.ts';
import { collectingTerminal } from './collecting-terminal.ts';
import { tailOfLine } from './tail-of-line.ts';

const HOSTILE = 'x\u001B[2J\u001B]0;t\u0007\u009B31m\r\ny\u202E';
const SHOWN = String.raw`x\u001b[2J\u001b]0;t\u0007\u009b31m\u000d\u000ay\u202e`;

/** As text, and as JSON. */
const terminals = () => OUTPUT_FORMATS.map((format) => collectingTerminal(format));
/** A document of YAML is many lines, and CSV has a head. */
const isOfLines = ({ format }: Terminal): boolean => format === 'table' || format === 'json';
const hasControls = (line: string): boolean => /[\p{Cc}\u202E]/u.test(line);

test.each([
  [
    'rows',
    (terminal) => writeRows(terminal, [{ name: HOSTILE, more: [HOSTILE] }], ['name', 'more'], ''),
  ],
  ['fields', (terminal) => writeFields(terminal, { [HOSTILE]: HOSTILE, in: { a: [HOSTILE] } })],
] satisfies [string, (terminal: ReturnType<typeof collectingTerminal>) => void][])(
  '%s: a name or a value is text',
  (_, write) => {
    for (const terminal of terminals()) {
      write(terminal);
      if (terminal.format === 'json')
        expect(() => JSON.parse(terminal.lines.join('')) as unknown).not.toThrow();
      else
        expect(terminal.lines.join('')).toContain(
          terminal.format === 'table' ? SHOWN : String.raw`\u009b31m`,
        );
      for (const line of terminal.lines) expect(hasControls(line), line).toBe(false);
    }
  },
);

test('progress stays in one row, however narrow the terminal: the next is written over it', () => {
  expect(withinRow('12345', 6)).toBe('12345');
  expect(withinRow('12345', 5)).toBe('1234');
  expect(withinRow('12345', 0)).toBe('12345');
});

test('an empty value is a dash, like a missing one', () => {
  const terminal = collectingTerminal('table');
  writeFields(terminal, { headers: {}, events: [], head: null, lane: { keys: {} } });
  writeRows(terminal, [{ events: [] }], ['events'], '');
  expect(terminal.lines).toEqual([
    'headers: -',
    'events: -',
    'head: -',
    'lane:',
    '  keys: -',
    'events',
    '-',
  ]);
});

test('tail: one event is one line, with any name', async () => {
  const line = {
    at_ms: 0,
    outcome: 'accepted',
    name: HOSTILE,
    people: [{ id: HOSTILE }],
    details: { event_id: HOSTILE },
  };
  const writeTo = await tailOfLine(line);
  for (const terminal of terminals()) {
    await writeTo(terminal);
    if (isOfLines(terminal)) expect(terminal.lines).toHaveLength(1);
    for (const each of terminal.lines) expect(hasControls(each)).toBe(false);
    if (terminal.format !== 'table') continue;
    expect(terminal.lines[0]?.split(SHOWN)).toHaveLength(4);
    // The zone is shown.
    expect(terminal.lines[0]).toMatch(/^00:00:00\.000Z /);
  }
});

test('listen: any client may post, but control characters do not reach the terminal', async () => {
  for (const terminal of terminals()) {
    const listener = await listen(terminal, {
      port: 0,
      status: 200,
      secret: Promise.resolve(undefined),
    });
    onTestFinished(() => listener.close());
    await fetch(listener.url, { method: 'POST', body: HOSTILE });
    if (isOfLines(terminal)) expect(terminal.lines).toHaveLength(1);
    expect(terminal.lines.join('')).toContain(String.raw`\u009b`);
    for (const line of terminal.lines) expect(hasControls(line)).toBe(false);
  }
});
