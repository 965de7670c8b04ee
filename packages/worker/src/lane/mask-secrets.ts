/**
 * Hides a webhook's secrets in the answers of its endpoint.
 *
 * An endpoint may repeat its request, as an error page does. The answer is kept and shown to every reader of deliveries,
 * while the values of headers are write-only (`api/src/endpoint-credentials/webhook-headers.ts`).
 */
const HIDDEN = '••••';
/** A shorter text may stand in any answer by chance. */
const SECRET_LENGTH_MIN = 8;
/** Names of headers whose usual values stand in many answers and are no secrets. */
const OPEN_HEADERS: ReadonlySet<string> = new Set([
  'accept',
  'accept-language',
  'cache-control',
  'content-language',
  'origin',
  'pragma',
  'prefer',
]);

/**
 * Texts to hide, the longest first: each value as it is, without its scheme (`Bearer`), the password of a `Basic` one,
 * and each of them as JSON writes it.
 *
 * @param headers - a webhook's own; names in lower case.
 */
export function secretsIn(headers: Readonly<Record<string, string>>): readonly string[] {
  const texts = Object.entries(headers)
    .filter(([name]) => !OPEN_HEADERS.has(name))
    .flatMap(([, value]) => [value, value.replace(/^\w+ +/, ''), passwordIn(value)])
    .flatMap((text) => [text, JSON.stringify(text).slice(1, -1)])
    .filter(({ length }) => length >= SECRET_LENGTH_MIN);
  return [...new Set(texts)].toSorted((one, other) => other.length - one.length);
}

/** Of a value of the scheme `Basic`; empty for another one. A key without a password is the user's name. */
function passwordIn(value: string): string {
  const [, encoded = ''] = /^basic +(\S+)$/i.exec(value) ?? [];
  const decoded = Buffer.from(encoded, 'base64').toString();
  const [, user = '', password = ''] = /^([^:]*):([^]*)$/.exec(decoded) ?? [];
  return password || user;
}

/** The answer with a mark in place of each secret. */
export function maskSecrets<Answer extends { readonly head: string; readonly body: string }>(
  answer: Answer,
  secrets: readonly string[],
): Answer {
  if (secrets.length === 0) return answer;
  const mask = (text: string): string =>
    secrets.reduce((masked, secret) => masked.replaceAll(secret, HIDDEN), text);
  return { ...answer, head: mask(answer.head), body: maskEnd(mask(answer.body), secrets) };
}

/** The kept body ends after 16 KB, perhaps within a secret: then its start is hidden. */
function maskEnd(text: string, secrets: readonly string[]): string {
  for (const secret of secrets) {
    const start = secret.slice(0, SECRET_LENGTH_MIN);
    let at = text.indexOf(start, Math.max(0, text.length - secret.length));
    for (; at >= 0; at = text.indexOf(start, at + 1))
      if (secret.startsWith(text.slice(at))) return `${text.slice(0, at)}${HIDDEN}`;
  }
  return text;
}
