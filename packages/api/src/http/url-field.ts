/** URLs that callers give: of receivers, of files, of companies. Whether one may be reached is checked when it is. */
import { text } from './fields.ts';

const LENGTH_MAX = 2048;

/** An http or https URL. */
export const webAddress = text(LENGTH_MAX)
  .superRefine((value, context) => {
    const message = whyNoUrl(value);
    if (message !== undefined) context.addIssue({ code: 'custom', message });
  })
  .meta({ format: 'uri' });

/** What is wrong with one, worded to follow its field's name; undefined where nothing is. */
function whyNoUrl(value: string): string | undefined {
  const url = URL.parse(value);
  // `URL` repairs missing slashes, blanks around and line breaks within; an address should need no repair.
  if (!url || !/^https?:\/\/[^\s\p{Cc}\\]+$/iu.test(value)) return 'must be an http or https URL';
  if (url.username !== '' || url.password !== '') return 'must not hold a user name or password';
  return undefined;
}
