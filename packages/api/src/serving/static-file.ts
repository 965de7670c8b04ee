/** Files that are served from memory: in each coding that the caller may take, and with an `ETag`. */
import { createHash } from 'node:crypto';
import type { FastifyReply, FastifyRequest } from 'fastify';

export interface StaticFile {
  readonly contentType: string;
  readonly etag: string;
  /** By the name of its coding; `identity` is always there. */
  readonly bodies: Readonly<Partial<Record<'br' | 'gzip' | 'identity', Buffer>>>;
}

/** @param coded - the same bytes in other codings. Absent: there are no other codings. */
export function staticFile(
  contentType: string,
  identity: Buffer,
  { br, gzip }: { readonly br?: Buffer | undefined; readonly gzip?: Buffer | undefined } = {},
): StaticFile {
  const hash = createHash('sha256').update(identity).digest('base64url').slice(0, 16);
  const bodies = { identity, ...(br && { br }), ...(gzip && { gzip }) };
  return { contentType, etag: `"${hash}"`, bodies };
}

/** Sends it in a coding that the caller takes, or 304 if the caller has it. */
export function sendStaticFile(
  request: FastifyRequest,
  reply: FastifyReply,
  { contentType, etag, bodies }: StaticFile,
): FastifyReply {
  void reply.headers({ etag, vary: 'accept-encoding' });
  if (isKnown(request.headers['if-none-match'], etag)) return reply.code(304).send();
  const accepted = request.headers['accept-encoding'];
  const coding = (['br', 'gzip'] as const).find(
    (each) => bodies[each] && isAccepted(typeof accepted === 'string' ? accepted : '', each),
  );
  if (coding) void reply.header('content-encoding', coding);
  return reply.header('content-type', contentType).send(bodies[coding ?? 'identity']);
}

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
