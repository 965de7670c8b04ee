/**
 * URLs from callers: of receivers, of files, of companies. An address that can never be reached, under any settings of
 * the workers, is refused with the part named. Whether other addresses may be reached is checked when they are.
 */
import { whyNeverAllowed } from '@sluice/domain/delivery/network-address';
import { text } from './fields.ts';

const LENGTH_MAX = 2048;
/** Of a name and of a part of it (RFC 1035 §2.3.4). */
const HOST_LENGTH_MAX = 253;
const LABEL_LENGTH_MAX = 63;

/** An http or https URL, as a text to show: it is never requested. */
export const webAddress = urlField(whyNoUrl);

/** An http or https URL that workers send requests to. */
export const reachableAddress = urlField(whyNeverReached);

function urlField(why: (value: string) => string | undefined) {
  return text(LENGTH_MAX)
    .superRefine((value, context) => {
      const message = why(value);
      if (message !== undefined) context.addIssue({ code: 'custom', message });
    })
    .meta({ format: 'uri' });
}

/** The fault of one, worded to follow its field's name; undefined if it is valid. */
function whyNoUrl(value: string): string | undefined {
  // `URL` repairs missing slashes, blanks around and line breaks within; an address should need no repair.
  if (value !== value.trim()) return 'must not begin or end with a blank';
  if (/[\s\p{Cc}]/u.test(value))
    return 'must not hold blanks, line breaks or control characters; a blank is written %20';
  if (value.includes('\\')) return 'must not hold a backslash';
  if (!/^https?:\/\/[^/?#]/i.test(value)) return 'must be an http or https URL';
  const url = URL.parse(value);
  if (!url) {
    const port = /^https?:\/\/[^/?#]*:(\d*)(?:[/?#]|$)/i.exec(value)?.[1];
    return port !== undefined && Number(port) > 65_535
      ? `must have a port from 1 to 65535, not ${port.slice(0, 20)}`
      : 'must be an http or https URL, and its host is neither a name nor an address';
  }
  if (url.username !== '' || url.password !== '') return 'must not hold a user name or password';
  return undefined;
}

function whyNeverReached(value: string): string | undefined {
  const problem = whyNoUrl(value);
  if (problem !== undefined) return problem;
  const { port, hostname } = new URL(value);
  if (port === '0') return 'must not have port 0, at which no server can listen';
  const address = hostname.replace(/^\[|\]$/g, '');
  if (isLiteral(hostname)) {
    const kind = whyNeverAllowed(address);
    return kind && `must not have the host ${address}, an address that is never sent to (${kind})`;
  }
  // One dot at the end is the root.
  const labels = hostname.replace(/\.$/, '').split('.');
  if (labels.includes('')) return `must not have the host ${hostname}, which has an empty part`;
  if (hostname.length > HOST_LENGTH_MAX || labels.some(({ length }) => length > LABEL_LENGTH_MAX))
    return `must have a host of at most ${HOST_LENGTH_MAX} characters, and ${LABEL_LENGTH_MAX} between dots`;
  return undefined;
}

/** `URL` has brought every way to write an address to one of these forms. */
const isLiteral = (hostname: string): boolean =>
  hostname.startsWith('[') || /^\d+\.\d+\.\d+\.\d+$/.test(hostname);
