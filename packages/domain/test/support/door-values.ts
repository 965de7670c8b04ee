/** Values of each kind, right and wrong, as real clients send them. */
import { RECEIVED_AT_MS } from './parsing.ts';

const BLANKS = [
  '',
  ' ',
  '\n',
  '\t \r\n',
  '\u00a0',
  '\ufeff',
  '\u200b',
  '\u0085',
  '\u001f\u2060\u200e',
];
const aroundEach = (...texts: string[]) =>
  texts.flatMap((text) => [
    text,
    ` ${text}`,
    `${text}\n`,
    `\r\n\t${text} `,
    `\u00a0${text}\u2028`,
    `\u200b${text}\u0085\u00ad`,
  ]);

const ANY = [undefined, null, true, false, {}, { a: 1 }, [], ['x']];
export const IDENTIFIERS = [
  ...BLANKS,
  ...aroundEach('x1', 'N/A', 'a b', 'x\ny', 'ü', '0'),
  ...['a\0', '\ud800', 'x'.repeat(151), ` ${'x'.repeat(150)} `],
  ...[0, 7, -1, 1.5, 2 ** 60, Number.NaN],
  ...ANY,
];
export const EMAILS = [
  ...BLANKS,
  ...aroundEach('ada@example.com', 'Ada@Example.COM', 'ada\u212a@example.com'),
  ...[
    'N/A',
    'none',
    '-',
    'ada@',
    '@example.com',
    'ada @example.com',
    'a@b',
    'null',
    '0',
    'a\u200bb@example.com',
    'mailto:a@example.com',
    'A <a@example.com>',
  ],
  ...[`${'a'.repeat(300)}@example.com`, 'a\0@example.com', 7, ...ANY],
];
export const TIMES = [
  ...BLANKS,
  ...aroundEach('2024-05-01T10:20:30Z', '1714558830', '1714558830123', '2024-05-01 10:20:30'),
  ...['2024-05-01t10:20:30z', '2016-12-31T23:59:60Z', '2024-04-30T24:00:00Z', '20240501T102030Z'],
  ...['2024-05-01', '2024-02-30', 'yesterday', '0x10', '1e9', '-1', 'NaN'],
  ...[1_714_558_830, 1_714_558_830.25, 1_714_558_830_123, 1_714_558_830_123_456, Number.NaN],
  ...[0, -1, 2026, 45_981.5, 20_261_120, '20261120', '45981.5', '2026', 99_999_999, 100_000_000],
  ...['1970-01-01T00:00:00Z', '1973-03-03T09:46:40Z', '2024-05-02T11:59:59Z', '2024-05-02T13:00Z'],
  ...[
    '1.71456E+09',
    '1.714558830E+09',
    '1.71455883e+09',
    '1.714558830e+09',
    '1.714558830123E12',
    '1e99',
    '1714558830e',
    '2024-05-01 10:20:30 UTC',
  ],
  ...['2024-05-01 12:20:30.123456789 +0200 CEST', '2024-05-01 10:20:30 +0000 UTC m=+0.000000001'],
  ...['2024-05-01 10:20:30 CEST', '2024-02-30 10:20:30 +0000 UTC', '2024-05-01 10:20:30 +0000'],
  ...['1714558830123456789', 1.7e18, 2 ** 60, '2024-W18-3', '2024-05-01T10'],
  ...['2025-05-01T12:00:00.500Z', '2025-05-01T12:00:00.501Z', RECEIVED_AT_MS + 365 * 86_400_000],
  ...['20240501T102030,5+0200', '2024-05-01T24:00:01Z', '2024-05-01 10:20:30 +0200', '1e12'],
  ...['2025-05-01', '2025-05-04', '2074-05-01', '9999-12-31T23:59:59Z', 253_402_300_799],
  ...ANY,
];
export const BOOLEANS = [
  ...BLANKS.filter((blank) => blank !== ''),
  ...aroundEach('true', 'TRUE', 'True', '1', 'false', 'FALSE', '0'),
  ...[1, 0, 2, -1, 'yes', 'no', 'on', 'null', '1.0', undefined, true, false],
];
export const NUMBERS = [
  ...BLANKS,
  ...aroundEach('1', '2147483647', '007'),
  ...['0', '-1', '1.5', '1e3', '2147483648', 'x', 1, 1.5, 0, -1, 2 ** 31, 2 ** 31 - 1],
  ...ANY,
];

export const NAMES = [
  ...BLANKS,
  ...aroundEach('Order Placed', 'x\u200by', 'N/A', '0'),
  ...['x'.repeat(100), ` ${'x'.repeat(100)}\u200b`, 7, true, {}, [], undefined, null],
];
