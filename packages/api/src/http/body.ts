/**
 * Body bytes → JSON value.
 *
 * An empty body is no body: clients send `Content-Type: application/json` with every call, also with DELETE
 * (ingestion-conventions.md §6.3). Bytes that are not UTF-8 are refused; Node would silently replace them. A key
 * `__proto__` is a key like any other, so that the schemas see it.
 */
import type { IncomingHttpHeaders } from 'node:http';
import type { FastifyBodyParser, FastifyInstance } from 'fastify';
import { RequestRefused } from './request-validation.ts';

/** A parser for Fastify, which has already held the body to its limit. */
export function parseJsonBody(
  app: Pick<FastifyInstance, 'getDefaultJsonParser'>,
): FastifyBodyParser<Buffer> {
  const parseJson = app.getDefaultJsonParser('ignore', 'ignore');
  const utf8 = new TextDecoder('utf-8', { fatal: true });

  return (request, body, done) => {
    if (body.length === 0) {
      done(null, undefined);
      return;
    }
    const encoded = refuseEncoded(request.headers);
    if (encoded !== undefined) {
      done(encoded);
      return;
    }
    let text: string;
    try {
      text = utf8.decode(body);
    } catch {
      done(new RequestRefused({ code: 'invalid_json', message: 'the body is not valid UTF-8' }));
      return;
    }
    void parseJson(request, text, done);
  };
}

/** Undefined for a body that comes as it is. */
export function refuseEncoded({
  'content-encoding': encoding = '',
}: IncomingHttpHeaders): RequestRefused | undefined {
  if (!isEncoded(encoding)) return undefined;
  return new RequestRefused({
    code: 'unsupported_media_type',
    message: 'the body must be sent uncompressed',
  });
}

/** True if the list names a coding; empty members and `identity` do not count (RFC 9110 §8.4). */
const isEncoded = (header: string): boolean =>
  header
    .split(',')
    .some((member) => member.trim() !== '' && member.trim().toLowerCase() !== 'identity');
