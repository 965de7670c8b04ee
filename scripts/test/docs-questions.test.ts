/** Twenty questions of new readers: the page with the answer is two clicks from the README, and a search finds it. */
import { readFileSync } from 'node:fs';
import { dirname, normalize } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { searchPages, type SearchIndex } from '@sluice/api/console/search-pages';
import { beforeAll, expect, test } from 'vitest';

const ROOT = fileURLToPath(new URL('../../', import.meta.url));
const FOUND_AMONG_FIRST = 3;
const CLICKS_MAX = 2;

/** Question, page below `docs/`, and heading with the answer. */
const QUESTIONS: readonly (readonly [question: string, page: string, anchor: string])[] = [
  // Operators.
  ['Which ports does it listen on?', 'operations/deploy', 'ports'],
  ['What happens to an event when Postgres is away?', 'operations/outages', 'outages'],
  [
    'How do I upgrade without downtime?',
    'operations/runbooks/upgrade-or-restart',
    'upgrade-or-restart-everything-under-load',
  ],
  ['How long are events kept?', 'operations/retention', 'how-long-data-is-kept'],
  [
    'How do I back up and restore?',
    'operations/runbooks/backup-and-restore',
    'backup-and-restore-of-both-stores',
  ],
  ['A worker died, what do I do?', 'operations/outages', 'a-worker-is-lost'],
  ['How do I add capacity?', 'operations/scale', 'scale'],
  // Engineers who send.
  [
    'How do I use the Segment library for Node?',
    'guides/send/clients',
    'send-with-a-client-of-your-language',
  ],
  ['What is the maximum size of a batch?', 'guides/send/batch-and-stream', 'size-limits'],
  ['Why do I get 429 too many requests?', 'guides/send/batch-and-stream', 'rate-limits'],
  [
    'I got 200, but my event is missing',
    'guides/receive/find-an-event',
    'a-call-was-answered-200-and-its-event-is-missing',
  ],
  ['How do I delete a person for GDPR?', 'guides/manage/delete-a-person', 'delete-a-person'],
  ['May I send again after a timeout?', 'concepts/idempotency', 'send-again-after-a-timeout'],
  // Engineers who receive.
  ['How do I rotate a signing key?', 'operations/keys', 'rotate-a-signing-key'],
  [
    'May two of my webhooks get events in different order?',
    'concepts/order-and-shards',
    'deliveries',
  ],
  [
    'How do I skip a delivery that blocks the others?',
    'concepts/deliveries-and-retries',
    'blocked-deliveries',
  ],
  [
    'My endpoint has a private address',
    'guides/manage/webhooks',
    'addresses-private-endpoints-and-firewalls',
  ],
  ['How do I verify a signature in Python?', 'guides/receive/verify', 'verify-a-delivery'],
  // Buyers.
  [
    'Is there single sign-on?',
    'guides/manage/sign-in',
    'sign-in-by-an-identity-provider-single-sign-on',
  ],
  ['When should I choose Svix instead?', 'comparison', 'when-to-choose-which'],
];

let index: SearchIndex;
beforeAll(async () => {
  const { renderDocs } = (await import(pathToFileURL(`${ROOT}scripts/build-docs.mjs`).href)) as {
    renderDocs: (docs: string, style: string) => Record<string, string>;
  };
  index = JSON.parse(renderDocs(`${ROOT}docs`, '/a.css')['index.json'] ?? '') as SearchIndex;
});

test.each(QUESTIONS)('a search finds: %s', (question, page, anchor) => {
  const found = searchPages(index, question).map((section) => `${section.page}#${section.anchor}`);
  expect(found.slice(0, FOUND_AMONG_FIRST)).toContain(`/docs/pages/${page}#${anchor}`);
});

test('every page with an answer is at most two clicks from the README', () => {
  const clicks = new Map([['README.md', 0]]);
  for (const [page, count] of clicks) {
    if (count === CLICKS_MAX) continue;
    const text = readFileSync(`${ROOT}${page}`, 'utf8');
    for (const [, to = ''] of text.matchAll(/\]\(([^)#:]+\.md)(?:#[^)]*)?\)/g)) {
      const target = normalize(`${dirname(page)}/${to}`);
      if (!clicks.has(target)) clicks.set(target, count + 1);
    }
  }
  const pages = QUESTIONS.map(([, page]) => `docs/${page}.md`);
  expect(pages.filter((page) => !clicks.has(page))).toEqual([]);
});
