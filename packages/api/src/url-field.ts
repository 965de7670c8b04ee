/** Addresses that callers give: of receivers, of files. Whether they may be reached is seen when they are. */

/** What is wrong with one, worded to follow its field's name; undefined where nothing is. */
export function whyNoUrl(value: string): string | undefined {
  const url = URL.parse(value);
  // `URL` repairs missing slashes, blanks around and line breaks within; an address should need no repair.
  if (!url || !/^https?:\/\/[^\s\\]+$/i.test(value)) return 'must be an http or https URL';
  if (url.username !== '' || url.password !== '') return 'must not hold a user name or password';
  return undefined;
}
