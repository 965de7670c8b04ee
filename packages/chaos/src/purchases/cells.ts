/**
 * The cells of the crash matrix of purchases: every workflow × every step × every moment at which the process that
 * works on it can die. Pure; a seed chooses which of them are run and in which order.
 *
 * | moment | the process has | the payment provider has |
 * |---|---|---|
 * | `before-intent` | the purchase workflow, and writes the step's intent | no request |
 * | `after-intent` | written the intent, and asks | the request, and not acted |
 * | `after-effect` | the same | acted, and not answered |
 * | `before-record` | the answer, and writes the result | answered |
 * | `after-record` | committed the result | answered |
 */
import { pick, type Random } from '@sluice/domain/values/seeded-random';

const PROVIDER_MOMENTS = ['after-intent', 'after-effect'] as const;
const RECORD_MOMENTS = ['before-intent', 'before-record', 'after-record'] as const;

export type ProviderMoment = (typeof PROVIDER_MOMENTS)[number];
export type Moment = ProviderMoment | (typeof RECORD_MOMENTS)[number];

/** The payment provider's request of a step: the content of its path. */
export const REQUESTS = {
  customer: { method: 'POST', path: '/v1/customers' },
  invoice: { method: 'POST', path: '/v1/invoices' },
  line: { method: 'POST', path: '/v1/invoiceitems' },
  finalize: { method: 'POST', path: '/finalize' },
  pay: { method: 'POST', path: '/pay' },
  void: { method: 'POST', path: '/void' },
  inspect: { method: 'GET', path: '/v1/subscriptions' },
  apply: { method: 'POST', path: '/v1/subscriptions/' },
  subscribe: { method: 'POST', path: '/v1/subscriptions' },
} as const;

export type Step = keyof typeof REQUESTS;

export type Workflow =
  | 'invoiced'
  | 'invoiced, declined'
  | 'card, paid'
  | 'card, not paid'
  | 'add-ons'
  | 'add-ons, declined'
  | 'checkout'
  | 'checkout, declined'
  | 'change of plan'
  /** For the Builder plan, of one that was bought with a coupon: it gives back the amount that was paid. */
  | 'plan left again'
  /** For the Builder plan, of one whose price was refunded: it gives back no credit. */
  | 'refunded plan left';

interface WorkflowShape {
  /** The steps that ask the payment provider. */
  readonly steps: readonly Step[];
  /** The card on file made the customer before the purchase workflow begins, so this step sends no request. */
  readonly isCustomerKnown: boolean;
  readonly ending: 'success' | 'declined' | 'failed';
}

const INVOICE: readonly Step[] = ['invoice', 'line', 'finalize'];

export const WORKFLOWS: Readonly<Record<Workflow, WorkflowShape>> = {
  invoiced: { steps: [...INVOICE, 'pay'], isCustomerKnown: true, ending: 'success' },
  'invoiced, declined': {
    steps: [...INVOICE, 'pay', 'void'],
    isCustomerKnown: true,
    ending: 'declined',
  },
  'card, paid': { steps: ['customer', ...INVOICE], isCustomerKnown: false, ending: 'success' },
  'card, not paid': {
    steps: ['customer', ...INVOICE, 'void'],
    isCustomerKnown: false,
    ending: 'failed',
  },
  'add-ons': { steps: ['inspect', 'apply'], isCustomerKnown: true, ending: 'success' },
  'add-ons, declined': { steps: ['inspect', 'apply'], isCustomerKnown: true, ending: 'declined' },
  checkout: { steps: ['subscribe'], isCustomerKnown: true, ending: 'success' },
  'checkout, declined': { steps: ['subscribe'], isCustomerKnown: true, ending: 'failed' },
  'change of plan': { steps: ['subscribe'], isCustomerKnown: true, ending: 'success' },
  'plan left again': { steps: ['subscribe'], isCustomerKnown: true, ending: 'success' },
  'refunded plan left': { steps: ['subscribe'], isCustomerKnown: true, ending: 'success' },
};

/** The work of the process at its death. */
export type CrashPoint =
  | { readonly process: 'worker'; readonly moment: Moment; readonly step: Step }
  /** The transaction that ends the purchase workflow, in any process that has learnt its ending. */
  | { readonly process: 'worker'; readonly moment: 'before-end' | 'after-end' }
  /** The call that starts the purchase, and the payment provider's event. */
  | {
      readonly process: 'api';
      readonly moment: 'before-start' | 'after-start' | 'before-event' | 'after-event';
    };

export interface Cell {
  readonly workflow: Workflow;
  readonly point: CrashPoint;
}

const CELLS: readonly Cell[] = (Object.keys(WORKFLOWS) as Workflow[]).flatMap((workflow) =>
  pointsOf(workflow).map((point) => ({ workflow, point })),
);

function pointsOf(workflow: Workflow): CrashPoint[] {
  const { steps, isCustomerKnown } = WORKFLOWS[workflow];
  const points: CrashPoint[] = (['before-start', 'after-start'] as const).map((moment) => ({
    process: 'api',
    moment,
  }));
  if (isCustomerKnown)
    for (const moment of RECORD_MOMENTS)
      points.push({ process: 'worker', moment, step: 'customer' });
  for (const step of steps)
    for (const moment of [...RECORD_MOMENTS, ...PROVIDER_MOMENTS])
      points.push({ process: 'worker', moment, step });
  for (const moment of ['before-end', 'after-end'] as const)
    points.push({ process: 'worker', moment });
  if (workflow === 'card, paid')
    for (const moment of ['before-event', 'after-event'] as const)
      points.push({ process: 'api', moment });
  return points;
}

export const nameOf = ({ workflow, point }: Cell): string =>
  `${workflow}: ${point.process} killed ${point.moment}${'step' in point ? ` of ${point.step}` : ''}`;

/** `count` cells in an order of the seed's; all of them if it is undefined. */
export function chooseCells(random: Random, count: number | undefined): Cell[] {
  const left = [...CELLS];
  const chosen: Cell[] = [];
  while (left.length > 0 && chosen.length < (count ?? CELLS.length)) {
    const cell = pick(random, left);
    left.splice(left.indexOf(cell), 1);
    chosen.push(cell);
  }
  return chosen;
}
