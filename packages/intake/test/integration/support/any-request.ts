/**
 * Random requests to every endpoint of intake: any body (`any-body.ts`), credentials of every kind, odd paths and
 * headers. All of them have framing that a server must understand; framing that it must refuse is the corpus of
 * `hostile-framing.test.ts`.
 */
import fc from 'fast-check';
import { routes, type Route } from '../../../src/calls/calls.ts';
import { bodyOf, encoding, text } from './any-body.ts';
import { SAMPLE_BODIES } from './sample-bodies.ts';

export interface AnyRequest {
  readonly method: string;
  /** As in `calls.ts` or `server.ts`; undefined for an unknown path. */
  readonly pattern: string | undefined;
  readonly route: Route | undefined;
  readonly path: string;
  readonly headers: readonly (readonly [string, string])[];
  readonly body: Buffer;
  /** Sizes of the chunks that the body is sent in; undefined if it is sent by its length. */
  readonly chunkSizes: readonly number[] | undefined;
  /** The API of its credentials. */
  readonly opens: 'pipelines' | 'track' | undefined;
  readonly isStrict: boolean;
}

export interface Credentials {
  readonly writeKey: string;
  readonly siteId: string;
  readonly apiKey: string;
}

const PAGES = [
  '/livez',
  '/readyz',
  '/metrics',
  '/auth',
  '/api/v1/accounts/region',
  '/v1/projects/:key/settings',
  '/v1/analytics-js/snippet/',
  '/v1/analytics-js/snippet/:key/analytics.min.js',
];
export const STREAM = '/v1/stream';

/** One part of a path: texts of clients, and texts that no client should write. */
const segment = fc.oneof(
  { weight: 3, arbitrary: fc.constantFrom('u1', 'u1%40example.com', '7', 'd1') },
  { weight: 3, arbitrary: text.map((value) => encodeURIComponent(value.toWellFormed())) },
  {
    weight: 2,
    arbitrary: fc
      .array(
        fc.constantFrom('%', '%0', '%00', '%2F', '%E0%A4', '.', '..', ';', '&', '=', ':', '~', 'a'),
        { maxLength: 5 },
      )
      .map((parts) => parts.join('')),
  },
);
const query = fc.oneof(
  { weight: 3, arbitrary: fc.constant('') },
  fc.constantFrom('?', '?id_type=email', '?id_type=%00', '?id_type=%', '?a&b==&&id_type', '?id=x'),
  fc.constantFrom('?line=0', '?line=9e99', '?id=%ff&line=2', '?id=a/b', `?id=${'i'.repeat(200)}`),
);

const contentType = fc.constantFrom(
  undefined, 'application/json', 'application/json; charset=utf-8', 'text/plain', 'application/x-www-form-urlencoded',
  'multipart/form-data', 'application/x-ndjson', '', ';;;', 'x'.repeat(2_000),
); // prettier-ignore
const oddHeader = fc.oneof(
  fc.constantFrom<readonly [string, string]>(
    ['X-Retry-Count', '3'],
    ['Expect', '100-continue'],
    ['Range', 'bytes=0-1'],
    ['If-None-Match', '*'],
    ['Accept-Encoding', 'gzip;q=0'],
    ['Origin', 'null'],
    ['X-Forwarded-For', '::1, evil'],
    ['X-HTTP-Method-Override', 'DELETE'],
    ['Cookie', `a=${'c'.repeat(6_000)}`],
    ['Authorization', 'Basic Og=='],
    ['Content-Encoding', ''],
  ),
  fc.tuple(
    fc.stringMatching(/^[!#$%&'*+.^_`|~0-9A-Za-z-]{1,20}$/).map((name) => `x${name}`),
    fc.stringMatching(/^[\x20-\x7e\xa0-\xff]{0,60}$/),
  ),
);

const basic = (credentials: string): string =>
  `Basic ${Buffer.from(credentials).toString('base64')}`;

function authorizations(
  api: 'pipelines' | 'track',
  { writeKey, siteId, apiKey }: Credentials,
): fc.Arbitrary<string | undefined> {
  const pipelines = basic(`${writeKey}:`);
  const track = basic(`${siteId}:${apiKey}`);
  return fc.oneof(
    { weight: 8, arbitrary: fc.constant(api === 'pipelines' ? pipelines : track) },
    fc.constantFrom(
      undefined, api === 'pipelines' ? track : pipelines, '', 'Basic', 'Basic ', 'Basic ====', 'Bearer x', basic(''), basic(':'),
      basic(`${siteId}:wrong`), `Basic ${'A'.repeat(3_000)}`, `basic\t${basic('x').slice(6)}`,
    ), // prettier-ignore
  );
}

interface Target {
  readonly method: string;
  readonly pattern: string | undefined;
  readonly route?: Route;
  readonly api: 'pipelines' | 'track';
  readonly samples: readonly unknown[];
}

const METHODS = ['GET', 'POST', 'PUT', 'DELETE', 'PATCH', 'HEAD', 'OPTIONS'];
const methodOf = (route: Route): string =>
  route.method === 'del' ? 'DELETE' : route.method.toUpperCase();
const calls: readonly Target[] = routes.map((route) => ({
  method: methodOf(route),
  pattern: route.pattern,
  route,
  api: route.call.api,
  samples: SAMPLE_BODIES[route.call.name] ?? [],
}));
const lines = {
  api: 'pipelines',
  samples: [{ type: 'track', userId: 'u1', event: 'x', messageId: 'm9' }],
} as const;

const target: fc.Arbitrary<Target> = fc.oneof(
  { weight: 12, arbitrary: fc.constantFrom(...calls) },
  { weight: 1, arbitrary: fc.constant({ method: 'POST', pattern: STREAM, ...lines }) },
  {
    weight: 1,
    arbitrary: fc
      .tuple(fc.constantFrom(...METHODS), fc.constantFrom(...PAGES))
      .map(([method, pattern]): Target => ({ method, pattern, api: 'track', samples: [{}] })),
  },
  {
    weight: 1,
    arbitrary: fc
      .tuple(fc.constantFrom(...METHODS), fc.constantFrom(...calls))
      .filter(
        ([method, { pattern }]) =>
          !routes.some((route) => route.pattern === pattern && methodOf(route) === method),
      )
      .map(([method, { pattern, api, samples }]): Target => ({ method, pattern, api, samples })),
  },
  {
    weight: 1,
    arbitrary: fc
      .constantFrom(...METHODS)
      .map((method): Target => ({ method, pattern: undefined, api: 'track', samples: [{}] })),
  },
);

export function anyRequest(credentials: Credentials): fc.Arbitrary<AnyRequest> {
  return target.chain((where) =>
    fc
      .record({
        segments: fc.array(segment, { minLength: 2, maxLength: 2 }),
        query,
        body: bodyOf(where.samples),
        encoding,
        contentType,
        authorization: authorizations(where.api, credentials),
        strict: fc.constantFrom(undefined, '1', '1', '0', 'true', '11'),
        odd: fc.array(oddHeader, { maxLength: 3 }),
        chunkSizes: fc.option(fc.array(fc.integer({ min: 1, max: 5_000 }), { minLength: 1 }), {
          nil: undefined,
          freq: 4,
        }),
      })
      .map((drawn): AnyRequest => {
        const [said, encode] = drawn.encoding;
        const headers = [
          ['Authorization', drawn.authorization],
          ['Content-Type', drawn.contentType],
          ['Content-Encoding', said],
          ['X-Strict-Mode', drawn.strict],
        ].filter((header): header is [string, string] => header[1] !== undefined);
        const last = (name: string): string | undefined =>
          [...headers, ...drawn.odd].findLast(([each]) => each.toLowerCase() === name)?.[1];
        const { writeKey, siteId, apiKey } = credentials;
        const opened = new Map([
          [basic(`${writeKey}:`), 'pipelines' as const],
          [basic(`${siteId}:${apiKey}`), 'track' as const],
        ]);
        let at = 0;
        const place = (where.pattern ?? `/v3/${drawn.segments[0]}`).replaceAll(
          /:\w+/g,
          () => drawn.segments[at++] ?? '',
        );
        return {
          method: where.method,
          pattern: where.pattern,
          route: where.route,
          path: place + drawn.query,
          headers: [...headers, ...drawn.odd],
          body: where.method === 'HEAD' ? Buffer.alloc(0) : encode(drawn.body),
          chunkSizes: drawn.chunkSizes,
          opens: opened.get(last('authorization') ?? ''),
          isStrict: ['1', 'true'].includes(last('x-strict-mode') ?? ''),
        };
      }),
  );
}

/** The request as it goes out. */
export function bytesOf({ method, path, headers, body, chunkSizes }: AnyRequest): Buffer {
  const framing = chunkSizes ? 'Transfer-Encoding: chunked' : `Content-Length: ${body.length}`;
  const head = [
    `${method} ${path} HTTP/1.1`,
    'Host: intake.example',
    'Connection: close',
    ...headers.map(([name, value]) => `${name}: ${value}`),
    framing,
  ];
  const start = Buffer.from(`${head.join('\r\n')}\r\n\r\n`, 'latin1');
  if (!chunkSizes) return Buffer.concat([start, body]);
  const parts: Uint8Array[] = [start];
  for (let at = 0, index = 0; at < body.length; index++) {
    const chunk = body.subarray(at, at + chunkSizes[index % chunkSizes.length]!);
    at += chunk.length;
    parts.push(Buffer.from(`${chunk.length.toString(16)}\r\n`), chunk, Buffer.from('\r\n'));
  }
  return Buffer.concat([...parts, Buffer.from('0\r\n\r\n')]);
}
