/** Headers of calls: a stranger's are refused, and a key's own open its workspace. They never throw. */
import { createHash } from 'node:crypto';
import { equal, ok } from 'node:assert/strict';
import type { WorkspaceKey } from '@sluice/database/accounts/workspace-keys';
import { asksForStream } from '@sluice/api/publishing/feed-accept';
import { hintOf, KeyRing } from '@sluice/intake/auth/authenticate';
import { readContentEncoding } from '@sluice/intake/calls/read-body';
import { framingProblem, readHead } from '@sluice/intake/http/request-head';
import type { FuzzTarget } from '../fuzz-target.ts';

const SECRET = 'sk_of_nobody_else';
const SITE = 'site-of-nobody-else';
const NAMES = [
  'authorization',
  'content-encoding',
  'content-length',
  'transfer-encoding',
  'host',
  'x-strict-mode',
  'origin',
];

const keyOf = (kind: 'track' | 'pipelines', siteId: string | null): WorkspaceKey => ({
  kind,
  siteId,
  secretHash: createHash('sha256').update(SECRET).digest(),
  environmentId: 7,
  accountId: '1',
  phoneIdentifies: false,
});
const keys = new KeyRing();
keys.replace([keyOf('pipelines', null), keyOf('track', SITE)]);

/** By an independent reading of RFC 7617 and 6750: the secret stands in it, decoded or as it is. */
function mentionsSecret(header: string): boolean {
  const decoded = Buffer.from(header.replace(/^\s*basic\s+/i, ''), 'base64').toString();
  return header.includes(SECRET) || decoded.includes(SECRET);
}

/** @public `scripts/fuzz.ts` imports it by the file's name. */
export const target: FuzzTarget = {
  seeds: [
    `Basic ${btoa(`${SECRET}:`)}`,
    `Bearer ${SECRET}`,
    `Basic ${btoa(`${SITE}:${SECRET}`)}`,
    `Basic ${btoa(':')}\n2\ngzip`,
    'application/json;q=0.5, text/event-stream;q=0, */*',
    'gzip, deflate\nidentity\nchunked\nexample.com:443\n[::1]:8080',
  ],
  words: [
    'Basic ',
    'Bearer ',
    '=',
    '==',
    ':',
    ',',
    ' ',
    '\t',
    'gzip',
    'deflate',
    'x-gzip',
    'identity',
    'br',
    ';q=0',
    ';q=1',
    'text/event-stream',
    '*/*',
    'chunked',
    '[::1]',
    btoa(`${SECRET}:`),
    btoa(`${SITE}:${SECRET}`),
  ],
  run(input) {
    const lines = input.toString('latin1').split('\n');
    for (const line of lines) {
      const found = keys.environmentIdOf(line);
      if (!mentionsSecret(line)) equal(found, undefined, `opened a workspace: ${line}`);
      equal(keys.environmentIdOf(line), found, 'the second time is another answer');
      ok((hintOf(line) ?? '').length <= 4, 'a hint that tells more than four characters');
      ok(['identity', 'gzip', 'deflate', 'unsupported'].includes(readContentEncoding(line)));
      const isStream = asksForStream(line);
      if (!/text\/event-stream/i.test(line)) equal(isStream, false, `no stream: ${line}`);
      equal(asksForStream(`${line},text/event-stream`), true, `a stream beside ${line}`);
    }
    const head = readHead({
      forEach: (each) =>
        lines.forEach((line, index) => each(NAMES[index % NAMES.length] as string, line)),
    });
    const problem = framingProblem(head);
    if (head.contentLengthCount > 1 || head.hostCount > 1 || head.authorizationCount > 1)
      ok(problem !== undefined, 'a repeated header passes');
  },
};

equal(keys.environmentIdOf(`Basic ${btoa(`${SECRET}:`)}`), 7);
