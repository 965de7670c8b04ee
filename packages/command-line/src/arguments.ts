/** Words of the command line → values; what cannot be one is told with an example. */
import { InvalidArgumentError } from 'commander';

export const positiveInteger = (text: string): number => {
  const number = Number(text);
  if (!Number.isSafeInteger(number) || number < 1)
    throw new InvalidArgumentError('It must be an integer from 1.');
  return number;
};
export const wholeNumber = (text: string): number => (text === '0' ? 0 : positiveInteger(text));
const within =
  (min: number, max: number) =>
  (text: string): number => {
    const number = Number(text);
    if (text === '' || !Number.isInteger(number) || number < min || number > max)
      throw new InvalidArgumentError(`It must be an integer from ${min} to ${max}.`);
    return number;
  };
/** 0: any free one. */
export const port = within(0, 65_535);
/** Of an answer; those below are none yet. */
export const httpStatus = within(200, 599);
export const address = (text: string): string => {
  if (!URL.canParse(text))
    throw new InvalidArgumentError('It must be a URL, like http://127.0.0.1:8090.');
  return text;
};
export const gather = (text: string, earlier: string[] = []): string[] => [
  ...earlier,
  address(text),
];

/** ISO 8601 → Unix seconds. */
export const instantSeconds = (text: string): number => {
  const ms = Date.parse(text);
  if (Number.isNaN(ms))
    throw new InvalidArgumentError('It must be a time, like 2026-11-20T10:00:00Z.');
  return Math.floor(ms / 1_000);
};
