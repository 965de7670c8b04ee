/** What `npm start` prints when it is ready: addresses, demo credentials, three lines to paste. */
import { DEMO } from '@sluice/database/demo/seed-demo';

export interface BannerFacts {
  readonly intake: string;
  readonly api: string;
  readonly worker: string;
  /** In words: the embedded server's port, or that it is the operator's own. */
  readonly postgres: string;
  /** The simulated payment provider; nothing where the real one is used. */
  readonly simulator: string | undefined;
  readonly queues: string;
  readonly directory: string;
  readonly startedInMs: number;
  /** Why there is no demo workspace; nothing when there is. */
  readonly demoRefusal: string | undefined;
}

export function renderBanner(facts: BannerFacts): string {
  const { intake, api, worker } = facts;
  const where = `
Sluice is ready (${(facts.startedInMs / 1000).toFixed(1)} s). Ctrl-C stops it; the data stays in ${facts.directory}

  Intake     ${intake}   Pipelines API and Track API
  API        ${api}   reporting webhooks, app API, accounts
  Worker     ${worker}   /readyz, /metrics (the others have them too)
  Payments   ${facts.simulator === undefined ? 'Stripe, as STRIPE_SECRET_KEY says' : `${facts.simulator}   simulated payment provider (STRIPE_SECRET_KEY switches to the real one)`}
  Postgres   ${facts.postgres}
  Queues     ${facts.queues}
`;
  if (facts.demoRefusal !== undefined) {
    return `${where}\nNo demo workspace: ${facts.demoRefusal}. Its keys, if there were any, are out of force.\n`;
  }
  return `${where}
Demo workspace (account ${DEMO.accountId}, environment ${DEMO.environmentId})

  Pipelines write key   ${DEMO.writeKey}
  Track site id, key    ${DEMO.siteId}, ${DEMO.apiKey}
  App API bearer        ${DEMO.appKey}
  Webhook signing key   ${DEMO.signingKey}
  Account bearer        ${DEMO.accountToken}   account ${DEMO.accountId}, pays by card
                        ${DEMO.invoicedAccountToken}   account ${DEMO.invoicedAccountId}, pays by invoice

Try it:

${demoCommands(intake, api)
  .map((command) => `  ${command}`)
  .join('\n\n')}
`;
}

/** A person comes in; a webhook is set up; the person is read back. Each is one line for a shell. */
function demoCommands(intake: string, api: string): string[] {
  const json = `-H 'Content-Type: application/json'`;
  const bearer = `-H 'Authorization: Bearer ${DEMO.appKey}'`;
  const person = JSON.stringify({
    userId: 'ada',
    traits: { email: 'ada@example.com', plan: 'pro' },
  });
  const webhook = JSON.stringify({
    name: 'My receiver',
    endpoint: 'http://127.0.0.1:9000/hook',
    events: ['customer_subscribed', 'customer_unsubscribed'],
  });
  return [
    `curl -u ${DEMO.writeKey}: -H 'X-Strict-Mode: 1' ${json} -d '${person}' ${intake}/v1/identify`,
    `curl ${bearer} ${json} -d '${webhook}' ${api}/v1/reporting_webhooks`,
    `curl ${bearer} '${api}/v1/customers?email=ada%40example.com'`,
  ];
}
