/** Times, durations, changes and texts of others, in words. */
import { expect, test } from 'vitest';
import { activityText } from '../../src/sentences/activity-text.ts';
import { LANGUAGES, snippetOf } from '../../src/sentences/snippets.ts';
import { nextInvoiceText } from '../../src/sentences/money-text.ts';
import { ageText, durationText, instantText } from '../../src/sentences/time-text.ts';
import { visibleText } from '../../src/sentences/visible-text.ts';

test.each([
  [24, '24 ms'],
  [999.6, '1000 ms'],
  [1_000, '1 s'],
  [90_000, '90 s'],
  [59 * 60_000, '59 min'],
  [3 * 3_600_000, '3 h'],
  [3 * 86_400_000, '3 d'],
])('%d ms is %s', (durationMs, text) => {
  expect(durationText(durationMs)).toBe(text);
});

test('an age shows whether its time is past, present or to come', () => {
  expect([ageText(0, 5_000), ageText(5_000, 0), ageText(0, 400)]).toEqual([
    '5 s ago',
    'in 5 s',
    'now',
  ]);
});

test('a time in UTC has its milliseconds, and a local one its offset', () => {
  const atMs = Date.parse('2026-11-25T17:37:10.959Z');
  expect(instantText(atMs)).toBe('2026-11-25 17:37:10.959 UTC');
  expect(instantText(atMs, { isWhole: true })).toBe('2026-11-25 17:37:10 UTC');
  const local = instantText(atMs, { isLocal: true });
  expect(local).toMatch(/ [+-]\d\d:\d\d$/);
  expect(Date.parse(local.replace(' ', 'T').replace(' ', ''))).toBe(atMs);
});

test.each([
  ['2026-12-01T04:30:00Z', 'America/New_York', '2026-11-30 23:30:00 -05:00'],
  ['2026-07-01T04:30:00Z', 'America/New_York', '2026-07-01 00:30:00 -04:00'],
  ['2026-07-01T20:00:00Z', 'Asia/Kolkata', '2026-07-02 01:30:00 +05:30'],
  ['2026-07-01T20:00:00Z', 'Etc/UTC', '2026-07-01 20:00:00 UTC'],
  ['2026-07-01T20:00:00Z', 'Nowhere/None', '2026-07-01 20:00:00 UTC'],
])('%s in %s is %s, also for a viewer who wants local times', (iso, zone, text) => {
  for (const isLocal of [false, true])
    expect(instantText(Date.parse(iso), { zone, isLocal, isWhole: true })).toBe(text);
});

test('the next invoice has its day, without a time that another zone would move to the day before', () => {
  const dollars = (amount: number) => ({ amount, currency: 'usd' });
  const next = { date: '2026-12-01', estimated: dollars(100_000) };
  expect(nextInvoiceText(next, dollars(250))).toBe(
    'The next invoice, of 2026-12-01 (UTC), is $1,000.00 and $2.50 for usage beyond the plan: an estimate, before taxes and coupons.',
  );
  expect(nextInvoiceText(null, undefined)).toBe(
    'There is no subscription, so no invoice comes by itself.',
  );
  expect(nextInvoiceText(null, dollars(250))).toBe(
    'There is no subscription, so no invoice comes by itself. Usage beyond the plan costs $2.50.',
  );
});

test('a change reads from one value to the other; other data as JSON, cut', () => {
  expect(activityText({ plan: { from: 'pro', to: 'free' }, age: { from: 3, to: null } })).toBe(
    'plan pro → free · age 3 → none',
  );
  expect(activityText({ email: { from: null, to: 'a@b.example' } })).toBe('email a@b.example');
  expect(activityText({ total: 12 })).toBe('{"total":12}');
  expect(activityText({})).toBe('');
  expect(activityText({ text: 'x'.repeat(500) }).length).toBeLessThan(150);
});

test('characters that do not show are shown', () => {
  expect(visibleText('a\u0007b\u202ec\u001b[31md\te\nf')).toBe(
    String.raw`a\u0007b\u202ec\u001b[31md` + '\te\nf',
  );
  // Each mark that changes the direction of a text (Unicode, Bidi_Control), and the separators of lines.
  for (const mark of '\u061c\u200e\u200f\u2028\u2029\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069')
    expect(visibleText(`a${mark}b`)).toMatch(/^a\\u[0-9a-f]{4}b$/);
});

test('every sample has the address and the key, and a key that is a secret is a variable', () => {
  for (const { id } of LANGUAGES) {
    const demo = snippetOf(id, { intakeUrl: 'https://in.example', writeKey: 'demo' });
    expect(demo).toContain('https://in.example/v1/');
    expect(demo).toContain('demo');
    const own = snippetOf(id, { intakeUrl: 'https://in.example', writeKey: '$SLUICE_WRITE_KEY' });
    expect(own).toMatch(/SLUICE_WRITE_KEY|YOUR_WRITE_KEY/);
  }
});

test('the first call in Go is a whole program with the imports that it needs', () => {
  for (const writeKey of ['demo', '$SLUICE_WRITE_KEY']) {
    const program = snippetOf('go', { intakeUrl: 'https://in.example', writeKey });
    expect(program).toMatch(/^package main\n[^]*\nfunc main\(\) \{[^]*\n\}$/);
    for (const [name, word] of [
      ...([
        ['fmt', 'fmt.'],
        ['net/http', 'http.'],
        ['os', 'os.'],
        ['strings', 'strings.'],
      ] as const),
    ])
      expect(program.includes(`\t"${name}"\n`)).toBe(program.includes(word));
  }
});
