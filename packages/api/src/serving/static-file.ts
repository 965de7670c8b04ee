/** Files that are served from memory: in each coding that the caller may take, and with an `ETag`. */
import { createHash } from 'node:crypto';
import type { FastifyReply, FastifyRequest } from 'fastify';

type Coding = 'br' | 'gzip' | 'identity';

export interface StaticFile {
  readonly contentType: string;
  /** Hash of the bytes without a coding. */
  readonly hash: string;
  /** By the name of its coding; `identity` is always there. */
  readonly bodies: Readonly<Partial<Record<Coding, Buffer>>>;
}

/** @param coded - the same bytes in other codings. Absent: there are no other codings. */
export function staticFile(
  contentType: string,
  identity: Buffer,
  { br, gzip }: { readonly br?: Buffer | undefined; readonly gzip?: Buffer | undefined } = {},
): StaticFile {
  const hash = createHash('sha256').update(identity).digest('base64url').slice(0, 16);
  const bodies = { identity, ...(br && { br }), ...(gzip && { gzip }) };
  return { contentType, hash, bodies };
}

/** Sends it in a coding that the caller takes, or 304 if the caller has it. */
export function sendStaticFile(
  request: FastifyRequest,
  reply: FastifyReply,
  { contentType, hash, bodies }: StaticFile,
): FastifyReply {
  const accepted = request.headers['accept-encoding'];
  const coding = (['br', 'gzip'] as const).find(
    (each) => bodies[each] && isAccepted(typeof accepted === 'string' ? accepted : '', each),
  );
  const etag = tagOf(hash, coding);
  void reply.headers({ etag, vary: 'accept-encoding' });
  if (isKnown(request.headers['if-none-match'], etag)) return reply.code(304).send();
  if (coding) void reply.header('content-encoding', coding);
  return reply.header('content-type', contentType).send(bodies[coding ?? 'identity']);
}

/** Each coding has a tag of its own: equal strong tags promise equal bytes (RFC 9110 §8.8.3). */
const tagOf = (hash: string, coding: Coding | undefined): string =>
  coding === undefined ? `"${hash}"` : `"${hash}-${coding}"`;

/**
 * True if the caller's list has the tag. They are compared weakly (RFC 9110 §13.1.2), because a proxy that compresses
 * makes the tag a weak one.
 */
const isKnown = (header: string | undefined, etag: string): boolean =>
  (header ?? '')
    .split(',')
    .map((each) => each.trim().replace(/^W\//, ''))
    .some((each) => each === etag || each === '*');

/** The coding is named, and not with a weight of zero (RFC 9110 §12.5.3). */
const isAccepted = (header: string, coding: string): boolean =>
  header.split(',').some((each) => {
    const [name, weight = ''] = each.split(';').map((part) => part.trim().toLowerCase());
    return name === coding && !/^q=0(?:\.0*)?$/.test(weight);
  });
