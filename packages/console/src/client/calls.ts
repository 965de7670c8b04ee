/**
 * Calls of the API by `@sluice/client`. A call is a value: a screen makes it, and a hook or a button sends it.
 *
 * `get('/v1/feeds/{name}', { path: { name } })` has the parameters, the body and the answer of the API's description.
 */
import { createApiClient } from '@sluice/client';
import type { Call, SendOptions } from './call.ts';
import type { Answer, GivenOf, Method, Operation, PathOf } from './operations.ts';
import { fetchAnswer, headersOf } from './request.ts';

/** Its `fetch` adds the session's headers, and throws the failures. So an answer of it is one of success. */
const client = createApiClient({ url: '', fetch: fetchAnswer });

interface AnyGiven {
  readonly path?: object;
  readonly query?: object;
  readonly body?: unknown;
}

type ParseAs = 'json' | 'blob' | 'stream';

/** The client's own types are of one path; here the path is any, and `Caller` has the types. */
type AnyRequest = (
  method: Method,
  path: string,
  init: object,
) => Promise<{ readonly data?: unknown }>;

const callOf = (method: Method, path: string, given: AnyGiven, parseAs: ParseAs = 'json') => ({
  method,
  key: JSON.stringify([method, path, given]),
  send: async ({ signal, ...options }: SendOptions) => {
    const { data } = await (client.request as AnyRequest)(method, path, {
      params: { path: given.path, query: given.query },
      body: given.body,
      headers: headersOf(options),
      redirect: 'error',
      parseAs,
      ...(signal && { signal }),
    });
    return data;
  },
});

/** `given` may be absent if it would be empty. */
type Caller<M extends Method> = <Path extends PathOf<M>>(
  path: Path,
  ...given: object extends GivenOf<Operation<M, Path>>
    ? [GivenOf<Operation<M, Path>>?]
    : [GivenOf<Operation<M, Path>>]
) => Call<Answer<Operation<M, Path>>>;

const caller =
  (method: Method) =>
  (path: string, given: AnyGiven = {}) =>
    callOf(method, path, given);

export const get = caller('get') as Caller<'get'>;
export const post = caller('post') as Caller<'post'>;
export const put = caller('put') as Caller<'put'>;
export const remove = caller('delete') as Caller<'delete'>;

/** The paths whose answer has the type of content. */
type PathWith<Content extends string> = {
  [Path in PathOf<'get'>]: Operation<'get', Path> extends {
    responses: { 200: { content: Record<Content, unknown> } };
  }
    ? Path
    : never;
}[PathOf<'get'>];

/** A file. */
export const getFile = <Path extends PathWith<'text/csv'>>(
  path: Path,
  given: GivenOf<Operation<'get', Path>>,
): Call<Blob> => callOf('get', path, given as AnyGiven, 'blob') as Call<Blob>;

/** Server-sent events. The call is answered when the server has accepted it. */
export const getStream = <Path extends PathWith<'text/event-stream'>>(
  path: Path,
  given: GivenOf<Operation<'get', Path>>,
): Call<ReadableStream<Uint8Array<ArrayBuffer>>> =>
  callOf('get', path, given as AnyGiven, 'stream') as Call<ReadableStream<Uint8Array<ArrayBuffer>>>;
