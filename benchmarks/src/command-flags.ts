/** Takes out the flags of `npm run bench` itself; the rest are the benchmark's own. */

/** Takes `--flag` out of the arguments. @returns whether it was there. */
export function takeFlag(arguments_: string[], flag: string): boolean {
  const place = arguments_.indexOf(flag);
  if (place < 0) return false;
  arguments_.splice(place, 1);
  return true;
}

/** Takes `--option value` or `--option=value` out. @throws Error if the value is missing. */
export function takeOption(arguments_: string[], option: string): string | undefined {
  const place = arguments_.findIndex(
    (argument) => argument === option || argument.startsWith(`${option}=`),
  );
  if (place < 0) return undefined;
  const [argument = ''] = arguments_.splice(place, 1);
  const value =
    argument === option ? arguments_.splice(place, 1)[0] : argument.slice(option.length + 1);
  if (value === undefined || value === '' || value.startsWith('-'))
    throw new Error(`${option} wants a value`);
  return value;
}
