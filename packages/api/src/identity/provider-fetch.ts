/**
 * `fetch` for `openid-client`, by our own connections: an account gives the address of its provider, so only addresses
 * that a webhook may be sent to are reached, and by the same egress proxy. An answer has a bound, and redirects are not
 * followed.
 */
import { sendRequest } from '@sluice/platform/outgoing/send-request';
import type { VettedConnector } from '@sluice/platform/outgoing/vetted-connection';
import type { CustomFetch } from 'openid-client';

/** The largest there is, the keys of a large provider, has 20 KB. */
const ANSWER_SIZE_BYTES_MAX = 256 * 1024;

/** No answer came, or one that must not be read. The message is for the operator's log. */
export class ProviderUnreachable extends Error {}

export function createProviderFetch(connector: VettedConnector): CustomFetch {
  return async (address, { method, headers, body, signal }) => {
    // The client sends forms, or no body.
    const text = body instanceof URLSearchParams || typeof body === 'string' ? String(body) : '';
    try {
      const answer = await sendRequest(connector, new URL(address), {
        method,
        headers: { ...headers, 'accept-encoding': 'identity', 'user-agent': 'Sluice' },
        ...(text !== '' && { body: text }),
        ending: signal ?? new AbortController().signal,
      });
      const chunks: Buffer[] = [];
      let sizeBytes = 0;
      for await (const chunk of answer as AsyncIterable<Buffer>) {
        sizeBytes += chunk.length;
        if (sizeBytes > ANSWER_SIZE_BYTES_MAX) {
          answer.destroy();
          throw new Error(`the answer has more than ${ANSWER_SIZE_BYTES_MAX} bytes`);
        }
        chunks.push(chunk);
      }
      const contentType = answer.headers['content-type'];
      return new Response(Buffer.concat(chunks), {
        status: answer.statusCode ?? 502,
        headers: contentType === undefined ? {} : { 'content-type': contentType },
      });
    } catch (error) {
      const reason = error instanceof Error ? error.message : String(error);
      throw new ProviderUnreachable(`${new URL(address).host}: ${reason}`, { cause: error });
    }
  };
}
