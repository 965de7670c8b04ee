/** Words of the command line → values; a wrong word is answered with an example. */
import { parseIsoMs } from '@sluice/domain/value-rules/iso-instant';
import { InvalidArgumentError } from 'commander';

/** Digits only: `1e3`, `0x10` and ` 5` are slips of the hand. */
const numberOf = (text: string): number => (/^\d+$/.test(text) ? Number(text) : Number.NaN);

export const positiveInteger = (text: string): number => {
  const number = numberOf(text);
  if (!Number.isSafeInteger(number) || number < 1)
    throw new InvalidArgumentError('It must be an integer from 1.');
  return number;
};
export const wholeNumber = (text: string): number => (text === '0' ? 0 : positiveInteger(text));
const within =
  (min: number, max: number) =>
  (text: string): number => {
    const number = numberOf(text);
    if (!Number.isInteger(number) || number < min || number > max)
      throw new InvalidArgumentError(`It must be an integer from ${min} to ${max}.`);
    return number;
  };
/** 0: any free one. */
export const port = within(0, 65_535);
/** Of an answer; lower ones are not final. */
export const httpStatus = within(200, 599);
/** Each is a socket. */
export const connectionCount = within(1, 1_000);
export const notEmpty = (text: string): string => {
  if (text === '') throw new InvalidArgumentError('It must not be empty.');
  return text;
};
/** A URL takes `.` and `..` for steps, encoded or not: they lead to another path. */
const partOfPath =
  (advice: string) =>
  (text: string): string => {
    notEmpty(text);
    if (text === '.' || text === '..')
      throw new InvalidArgumentError(`No path can name it; ${advice}.`);
    return text;
  };
export const eventId = partOfPath('`sluice tail` shows it as it comes');
export const personIdentifier = partOfPath('give the svc_id from `sluice people list`');
export const objectId = partOfPath('`sluice objects list` shows it');
/** Without its last slash: paths are put behind it, so that a proxy in front may give it one. */
export const address = (text: string): string => {
  const url = URL.parse(text);
  if (url === null || !['http:', 'https:'].includes(url.protocol))
    throw new InvalidArgumentError('It must be a URL, like http://127.0.0.1:8090.');
  if (url.username !== '' || url.password !== '' || url.search !== '' || url.hash !== '')
    throw new InvalidArgumentError('It must have no user, query or fragment.');
  return text.replace(/\/+$/, '');
};
export const gather = (text: string, earlier: string[] = []): string[] => [
  ...earlier,
  address(text),
];

export const gatherTexts = (text: string, earlier: string[] = []): string[] => [
  ...earlier,
  notEmpty(text),
];

/** A condition on a member of a delivery's body. */
export type Condition = {
  readonly field: string;
  readonly operator: string;
  readonly values?: string[];
};

/** `data.properties.total gte 100`, `metric in order_placed,order_paid`, `data.properties.coupon exists`. */
export const condition = (text: string, earlier: readonly Condition[] = []): Condition[] => {
  const [, field, operator, values] = /^\s*(\S+)\s+(\S+)(?:\s+(.*\S))?\s*$/.exec(text) ?? [];
  if (field === undefined || operator === undefined)
    throw new InvalidArgumentError('It must be a field, an operator and values: "metric in a,b".');
  return [
    ...earlier,
    { field, operator, ...(values !== undefined && { values: values.split(',') }) },
  ];
};

const DAY_LENGTH = '2026-11-20'.length;

/**
 * ISO 8601 → Unix seconds, by the rule of all other doors; a day is a UTC day. A time without a zone is refused here:
 * its user may mean the machine's own, and a replay from a wrong time sends everything again.
 */
export const instantSeconds = (text: string): number => {
  const isDay = text.length === DAY_LENGTH;
  const ms = parseIsoMs(text, !isDay);
  if (ms === undefined)
    throw new InvalidArgumentError(
      'It must be a time with its zone, like 2026-11-20T10:00:00Z or 2026-11-20T10:00+01:00, or a day of UTC.',
    );
  return Math.floor(ms / 1_000);
};

/** `id,name`. */
export const columnNames = (text: string): string[] => {
  const names = text.split(',').map((name) => name.trim());
  if (names.includes(''))
    throw new InvalidArgumentError('It must be names with commas between: id,name.');
  return names;
};
