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
  'content-language',
]);

/**
 * Texts to hide, the longest first: each value as it is, without its scheme (`Bearer`), and as JSON writes it.
 *
 * @param headers - a webhook's own; names in lower case.
 */
export function secretsIn(headers: Readonly<Record<string, string>>): readonly string[] {
  const texts = Object.entries(headers)
    .filter(([name]) => !OPEN_HEADERS.has(name))
    .flatMap(([, value]) => [value, value.replace(/^\w+ +/, '')])
    .flatMap((text) => [text, JSON.stringify(text).slice(1, -1)])
    .filter(({ length }) => length >= SECRET_LENGTH_MIN);
  return [...new Set(texts)].toSorted((one, other) => other.length - one.length);
}

/** The answer with a mark in place of each secret. */
export function maskSecrets<Answer extends { readonly head: string; readonly body: string }>(
  answer: Answer,
  secrets: readonly string[],
): Answer {
  if (secrets.length === 0) return answer;
  const mask = (text: string): string =>
    secrets.reduce((masked, secret) => masked.replaceAll(secret, HIDDEN), text);
  return { ...answer, head: mask(answer.head), body: mask(answer.body) };
}
