/**
 * The headers that a webhook's requests carry besides ours: their checks, and their visible parts.
 *
 * Values are encrypted on their way in, because receivers' tokens are in them. They are never shown again, and go to no
 * other server than the one that they were given for.
 */
import type { Webhook } from '@sluice/database/webhooks/webhooks';
import { isJsonObject } from '@sluice/domain/values/json';
import { secretContext } from '@sluice/domain/delivery/webhook';
import type { EncryptedText } from '@sluice/platform/secrets/encrypted-text';
import { z } from 'zod';

const HEADER_COUNT_MAX = 20;
const HEADER_NAME_LENGTH_MAX = 100;
const HEADER_VALUE_LENGTH_MAX = 2_000;
const HEADERS_LENGTH_MAX = 8_000;
const HEADER_VALUE = /^[\x21-\x7e](?:[\x20-\x7e]*[\x21-\x7e])?$/;
/** No character of a header's value: a hint that comes back is known for one. */
export const HIDDEN = '••••';
const HINT_LENGTH = 4;
/** Of a shorter value the hint would be too large a part. */
const HINTED_LENGTH_MIN = 16;

/** Our own headers, the connection's, and the ones that could contradict the body. */
const RESERVED_HEADERS = new Set([
  'accept-encoding',
  'connection',
  'content-encoding',
  'content-length',
  'content-type',
  'date',
  'expect',
  'host',
  'http2-settings',
  'keep-alive',
  'te',
  'trailer',
  'transfer-encoding',
  'upgrade',
  'user-agent',
  'via',
]);
const RESERVED_PREFIXES = ['x-svc-', 'x-cio-', 'webhook-', 'proxy-', 'sec-', ':'];

/** As a body gives them. Not by `z.record`: it drops a name that is `__proto__` without a word. */
export const headersInBody = z
  .custom<Record<string, string>>(isJsonObject, 'must be a JSON object')
  .superRefine((given, context) => {
    const entries: [name: string, value: unknown][] = Object.entries(given);
    const refuse = (message: string, name?: string): void =>
      context.addIssue({ code: 'custom', message, path: name === undefined ? [] : [name] });
    if (entries.length > HEADER_COUNT_MAX) {
      return refuse(`must hold at most ${HEADER_COUNT_MAX} headers`);
    }
    const seen = new Set<string>();
    for (const [name, value] of entries) {
      const lowerCase = name.toLowerCase();
      const why =
        (typeof value === 'string' ? whyNoHeader(lowerCase, value) : 'must be a string') ??
        (seen.has(lowerCase) ? 'must be given once, in any letter case' : undefined);
      if (why !== undefined) refuse(why, name);
      seen.add(lowerCase);
    }
    if (
      entries.reduce((sum, [name, value]) => sum + name.length + lengthOf(value), 0) >
      HEADERS_LENGTH_MAX
    ) {
      refuse(`must be at most ${HEADERS_LENGTH_MAX} characters long, all of them together`);
    }
  })
  .meta({
    type: 'object',
    additionalProperties: {
      ...{ type: 'string', minLength: 1, maxLength: HEADER_VALUE_LENGTH_MAX },
      pattern: HEADER_VALUE.source,
    },
    propertyNames: { maxLength: HEADER_NAME_LENGTH_MAX, pattern: "^[!#$%&'*+.^_`|~0-9A-Za-z-]+$" },
    description: `Headers that each request carries, such as \`authorization\`; names are kept in lower case. Not those that the service itself sends. Names and values have at most ${HEADERS_LENGTH_MAX} characters together. Values are not shown again, so a change names all of them with their values; without \`headers\` all stay.`,
    maxProperties: HEADER_COUNT_MAX,
  });

/** Name → value. @throws AppError if the key that encrypted them is lost. */
export function openHeaders(
  encrypted: string | null,
  environmentId: number,
  encryptedText: EncryptedText,
): Record<string, string> {
  if (encrypted === null) return {};
  const opened = encryptedText.decrypt(encrypted, secretContext(environmentId));
  return JSON.parse(opened) as Record<string, string>;
}

/** Name → hint, for the audit log; null if there are no headers, or the key that encrypted them is lost. */
export function headerHints(
  encrypted: string | null,
  environmentId: number,
  encryptedText: EncryptedText,
): Readonly<Record<string, string>> | null {
  if (encrypted === null) return null;
  try {
    return hintsOf(openHeaders(encrypted, environmentId, encryptedText));
  } catch {
    return null;
  }
}

/** The hints in place of the values. */
export const hintsOf = (values: Readonly<Record<string, string>>): Record<string, string> =>
  Object.fromEntries(Object.entries(values).map(([name, value]) => [name, hintOf(value)]));

/** The visible part of a secret: its end, if that is a small part of it. */
export function hintOf(value: string): string {
  const [, scheme = '', secret = value] = /^(\w+) +([^ ].*)/.exec(value) ?? [];
  // The end of a text in Base64 is the end of a password.
  const isShown = secret.length >= HINTED_LENGTH_MIN && scheme.toLowerCase() !== 'basic';
  return isShown ? `${HIDDEN}${secret.slice(-HINT_LENGTH)}` : HIDDEN;
}

/** True if stored values would go to another server than the one that they were given for. */
export function exposesHeaders(
  { endpoint, headers }: { readonly endpoint?: string | undefined; readonly headers?: unknown },
  before: Webhook,
): boolean {
  if (endpoint === undefined || headers !== undefined || before.customHeaders === null)
    return false;
  return new URL(endpoint).origin !== new URL(before.endpoint).origin;
}

const lengthOf = (value: unknown): number => (typeof value === 'string' ? value.length : 0);

/** Worded to follow the header's name; undefined if the header is valid. */
function whyNoHeader(lowerCase: string, value: string): string | undefined {
  // RFC 9110: a token, and visible characters with blanks between. No line break ends a header early.
  if (lowerCase.length > HEADER_NAME_LENGTH_MAX)
    return `must have a name of at most ${HEADER_NAME_LENGTH_MAX} characters`;
  // A token, but no name that languages of receivers treat as another thing than a name.
  if (!/^[!#$%&'*+.^_`|~0-9a-z-]+$/.test(lowerCase) || lowerCase === '__proto__')
    return 'is not the name of a header';
  if (
    RESERVED_HEADERS.has(lowerCase) ||
    RESERVED_PREFIXES.some((prefix) => lowerCase.startsWith(prefix))
  )
    return 'is sent by the service itself; leave it out';
  if (value.startsWith(HIDDEN))
    return 'is the hint that is shown in place of the value; send the value, or leave out `headers` to keep all of them';
  if (value.length > HEADER_VALUE_LENGTH_MAX)
    return `must be at most ${HEADER_VALUE_LENGTH_MAX} characters long`;
  if (!HEADER_VALUE.test(value))
    return 'must be visible ASCII characters, with blanks only between them';
  return undefined;
}
