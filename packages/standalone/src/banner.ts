/** Output of `npm start` when it is ready: addresses, demo credentials, lines to paste. */
import { join } from 'node:path';
import { DEMO } from '@sluice/database/demo/seed-demo';

/** Default of a worker's `WEBHOOK_LISTED_FAILURE_WAIT_MS` (`ingestion-webhooks.md` §8). */
const LISTED_FAILURE_WAIT_MS_DEFAULT = 3_600_000;
/** Address of `sluice listen`. */
const RECEIVER = 'http://127.0.0.1:9000';

export interface BannerFacts {
  readonly intake: string;
  readonly api: string;
  readonly worker: string;
  /** In words: the embedded server's port, or that it is the operator's own. */
  readonly postgres: string;
  /** The simulated payment provider; undefined if the real one is used. */
  readonly simulator: string | undefined;
  readonly queues: string;
  readonly directory: string;
  /** The checkout. */
  readonly root: string;
  /** Of a webhook's delivery that fails, before it is tried again. */
  readonly firstWaitMs: number;
  readonly startedInMs: number;
  /** Reason for which there is no demo workspace; undefined if there is one. */
  readonly demoRefusal: string | undefined;
  /** Whether webhooks and imports reach private addresses. */
  readonly allowsPrivateAddresses: boolean;
}

export function renderBanner(facts: BannerFacts): string {
  const { intake, api, worker } = facts;
  const where = `
Sluice is ready (${(facts.startedInMs / 1000).toFixed(1)} s). Ctrl-C stops it; the data stays in ${facts.directory}

  Console    ${api}/   open it in a browser
  Intake     ${intake}   Pipelines API and Track API
  API        ${api}   reporting webhooks, app API, accounts
  Worker     ${worker}   /readyz, /metrics (the others have them too)
  Payments   ${facts.simulator === undefined ? 'Stripe (STRIPE_SECRET_KEY is set)' : `${facts.simulator}   simulated payment provider (STRIPE_SECRET_KEY switches to the real one)`}
  Postgres   ${facts.postgres}
  Queues     ${facts.queues}
`;
  const privateAddresses = facts.allowsPrivateAddresses
    ? 'Every account can reach private addresses of this network through webhooks and imports, because WEBHOOK_ALLOW_PRIVATE_ADDRESSES is true.'
    : 'Webhooks and imports reach no private addresses. WEBHOOK_ALLOWED_NETWORKS allows single networks.';
  if (facts.demoRefusal !== undefined) {
    return `${where}\nNo demo workspace: ${facts.demoRefusal}. Its keys, if there were any, are out of force.\n${privateAddresses}\n`;
  }
  return `${where}
Demo workspace (account ${DEMO.accountId}, environment ${DEMO.environmentId})

  Pipelines write key   ${DEMO.writeKey}
  Track site id, key    ${DEMO.siteId}, ${DEMO.apiKey}
  App API bearer        ${DEMO.appKey}
  Webhook signing key   ${DEMO.signingKey}
  Account bearer        ${DEMO.accountToken}   account ${DEMO.accountId}, pays by card
                        ${DEMO.invoicedAccountToken}   account ${DEMO.invoicedAccountId}, pays by invoice
${facts.simulator === undefined ? '' : `                        ${DEMO.paidAccountToken}   account ${DEMO.paidAccountId}, pays by card, with a plan and a card on file\n`}${facts.allowsPrivateAddresses ? '' : `\n${privateAddresses}\n`}
Try it in another terminal, line by line or all at once. The lines start a receiver of webhooks, create a webhook to it, place a person's order, and read the person back.

${demoCommands(facts)
  .map((command) => `  ${command}`)
  .join('\n\n')}

The receiver prints the signed delivery; "kill %1" ends it. A delivery without an answer waits, and the webhook's others wait behind it:
${describeWait(facts.firstWaitMs)} "${sluiceOf(facts.root)} webhooks show 1" shows the time, "… webhooks probe 1" tries it at once.
`;
}

function describeWait(firstWaitMs: number): string {
  const here = `${firstWaitMs / 1_000} s at first`;
  return firstWaitMs === LISTED_FAILURE_WAIT_MS_DEFAULT
    ? `${here} (WEBHOOK_LISTED_FAILURE_WAIT_MS).`
    : `${here} in this demo, an hour elsewhere (WEBHOOK_LISTED_FAILURE_WAIT_MS).`;
}

/** An absolute path: the other terminal may be anywhere. */
const sluiceOf = (root: string): string => {
  const path = join(root, 'sluice');
  return /^[\w./-]+$/.test(path) ? path : `'${path.replaceAll("'", String.raw`'\''`)}'`;
};

/**
 * Each is one line for a shell, and ends once the next one can run: the receiver listens. The person, who comes through
 * a queue, is stored.
 */
function demoCommands({ intake, api, root }: BannerFacts): string[] {
  const curl = String.raw`curl -s -w '\n'`;
  const json = `-H 'Content-Type: application/json'`;
  const bearer = `-H 'Authorization: Bearer ${DEMO.appKey}'`;
  const order = JSON.stringify({
    batch: [
      { type: 'identify', userId: 'ada', traits: { email: 'ada@example.com', plan: 'pro' } },
      { type: 'track', userId: 'ada', event: 'order_placed', properties: { total: 42 } },
    ],
  });
  const webhook = JSON.stringify({
    name: 'My receiver',
    endpoint: `${RECEIVER}/hook`,
    events: ['event'],
    event_names: ['order_placed'],
  });
  return [
    `${sluiceOf(root)} listen --secret ${DEMO.signingKey} & curl -s --retry 30 --retry-delay 1 --retry-connrefused ${RECEIVER}/`,
    `${curl} ${bearer} ${json} -d '${webhook}' ${api}/v1/reporting_webhooks`,
    `${curl} -u ${DEMO.writeKey}: -H 'X-Strict-Mode: 1' ${json} -d '${order}' ${intake}/v1/batch`,
    `${curl} -f --retry 30 --retry-delay 1 --retry-all-errors ${bearer} ${api}/v1/customers/ada/attributes`,
  ];
}
