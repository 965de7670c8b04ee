import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { declineMessage } from '../../src/billing/decline-message.ts';
import {
  fingerprintOf,
  judgeCheckout,
  judgeStart,
  laneOf,
} from '../../src/billing/purchase-workflow.ts';
import {
  idempotencyKey,
  nextMove,
  retryDelayMs,
  type StepRecord,
  type StepState,
} from '../../src/billing/workflow-steps.ts';

describe('the start of a purchase in its lane', () => {
  test('creates a workflow in an empty lane, joins the same purchase, and is refused beside another invoiced one', () => {
    const mine = fingerprintOf('inbox_previews', { pack: 'pack_100' });
    const other = fingerprintOf('inbox_previews', { pack: 'pack_500' });
    const kind = fingerprintOf('credits', { type: 'llm', quantity: 100 });
    expect(judgeStart('invoiced', undefined, mine)).toBe('create');
    expect(judgeStart('invoiced', mine, mine)).toBe('join');
    expect(judgeStart('invoiced', mine, other)).toBe('in-flight');
    expect(judgeStart('invoiced', mine, kind)).toBe('in-flight');
    expect(judgeStart('checkout', mine, other)).toBe('join');
    expect(judgeStart('card', mine, other)).toBe('create');
  });

  test('the order and repetition of add-ons make no difference, the quantity does', () => {
    expect(fingerprintOf('addons', { skus: ['b', 'a', 'a'] })).toBe(
      fingerprintOf('addons', { skus: ['a', 'b'] }),
    );
    expect(fingerprintOf('credits', { type: 'llm', quantity: 1 })).not.toBe(
      fingerprintOf('credits', { quantity: 2, type: 'llm' }),
    );
    expect(laneOf('credits', 'invoiced')).toBe(laneOf('inbox_previews', 'invoiced'));
  });

  test('a checkout answers only a request for its plan, quantity and amount, and for its coupon if one is named', () => {
    const charged = { amount: 100, currency: 'usd' };
    const bought = { planId: 'p', couponCode: null, quantity: 1, charged };
    expect(judgeCheckout(bought, { planId: 'p', couponCode: null })).toBe('success');
    expect(judgeCheckout(bought, { planId: 'q', couponCode: null })).toBe('conflict');
    expect(judgeCheckout(bought, { planId: 'p', couponCode: null, quantity: 1 })).toBe('success');
    expect(judgeCheckout(bought, { planId: 'p', couponCode: null, quantity: 2 })).toBe('conflict');
    expect(judgeCheckout(bought, { planId: 'p', couponCode: 'C' })).toBe('conflict');
    expect(judgeCheckout({ ...bought, couponCode: 'C' }, { planId: 'p', couponCode: null })).toBe(
      'success',
    );
    for (const [amount, currency, judged] of [
      [100, 'usd', 'success'],
      [101, 'usd', 'conflict'],
      [100, 'eur', 'conflict'],
    ] as const)
      expect(
        judgeCheckout(bought, {
          planId: 'p',
          couponCode: null,
          expectedAmount: { amount, currency },
        }),
      ).toBe(judged);
  });
});

describe('the steps of a purchase workflow', () => {
  const kinds = fc.record({
    kind: fc.constantFrom(
      'addons' as const,
      'credits' as const,
      'inbox_previews' as const,
      'checkout' as const,
    ),
    rail: fc.constantFrom('card' as const, 'invoiced' as const),
    isExpired: fc.boolean(),
  });
  /** How the payment provider answers, one after another. */
  const answers = fc.array(
    fc.constantFrom<StepState>('done', 'done', 'done', 'intent', 'declined', 'refused', 'absent'),
    { minLength: 60, maxLength: 60 },
  );

  function play(workflow: Parameters<typeof nextMove>[0], script: readonly StepState[]) {
    const steps: StepRecord[] = [];
    for (const state of script) {
      const next = nextMove(workflow, steps);
      if (next.move !== 'do') return { next, steps };
      // Voiding is not declined: it ends, or it is tried again.
      const kept =
        next.step === 'void' && state !== 'absent' && state !== 'intent' ? 'done' : state;
      const index = steps.findIndex(
        (record) => record.step === next.step && record.attempt === next.attempt,
      );
      const record = { step: next.step, attempt: next.attempt, state: kept };
      if (index < 0) steps.push(record);
      else steps[index] = record;
    }
    return { next: nextMove(workflow, steps), steps };
  }

  test('each attempt is called again only while its outcome is unknown', () => {
    fc.assert(
      fc.property(kinds, answers, (workflow, script) => {
        const { steps } = play(workflow, script);
        const keys = steps.map((record) => idempotencyKey('run_1', record.step, record.attempt));
        expect(new Set(keys).size).toBe(keys.length);
      }),
    );
  });

  test('no purchase workflow ends without success while it has an invoice that is not void', () => {
    fc.assert(
      fc.property(kinds, answers, (workflow, script) => {
        const { next, steps } = play(workflow, script);
        if (next.move !== 'finish' || next.status === 'success') return;
        const has = (step: string) =>
          steps.some((each) => each.step === step && each.state === 'done');
        expect(has('void')).toBe(has('invoice'));
      }),
    );
  });

  test('no purchase workflow succeeds with a step that was declined or refused', () => {
    fc.assert(
      fc.property(kinds, answers, (workflow, script) => {
        const { next, steps } = play(workflow, script);
        if (next.move !== 'finish' || next.status !== 'success') return;
        expect(steps.some((each) => each.state === 'declined' || each.state === 'refused')).toBe(
          false,
        );
      }),
    );
  });

  test('by card the customer is waited for until the time is over, then the invoice is void', () => {
    const steps = (['customer', 'invoice', 'line', 'finalize'] as const).map((step) => ({
      step,
      attempt: 1,
      state: 'done' as const,
    }));
    const workflow = { kind: 'credits', rail: 'card' } as const;
    expect(nextMove({ ...workflow, isExpired: false }, steps)).toEqual({
      move: 'wait-for-payment',
    });
    expect(nextMove({ ...workflow, isExpired: true }, steps)).toEqual({
      move: 'do',
      step: 'void',
      attempt: 1,
    });
  });

  test('by invoice a payment that was taken on is waited for, and is no success by itself', () => {
    const done = (['customer', 'invoice', 'line', 'finalize'] as const).map((step) => ({
      step,
      attempt: 1,
      state: 'done' as const,
    }));
    const workflow = { kind: 'credits', rail: 'invoiced', isExpired: false } as const;
    const pay = (state: StepState) => [...done, { step: 'pay' as const, attempt: 1, state }];
    expect(nextMove(workflow, pay('done'))).toEqual({ move: 'wait-for-payment' });
    expect(nextMove(workflow, pay('declined'))).toEqual({ move: 'do', step: 'void', attempt: 1 });
  });

  test('a step without a result in eight attempts waits for a person, who can allow eight more', () => {
    const workflow = { kind: 'credits', rail: 'invoiced', isExpired: false } as const;
    const absent = (count: number, forgivenCount = 0): StepRecord[] =>
      Array.from({ length: count }, (_, index) => ({
        step: 'customer',
        attempt: index + 1,
        state: 'absent',
        isForgiven: index < forgivenCount,
      }));
    expect(nextMove(workflow, absent(7))).toEqual({ move: 'do', step: 'customer', attempt: 8 });
    expect(nextMove(workflow, absent(8))).toEqual({ move: 'park', step: 'customer' });
    expect(nextMove(workflow, absent(8, 8))).toEqual({ move: 'do', step: 'customer', attempt: 9 });
    expect(nextMove(workflow, absent(16, 8))).toEqual({ move: 'park', step: 'customer' });
  });

  test('waits grow and end at an hour', () => {
    const delays = Array.from({ length: 20 }, (_, count) => retryDelayMs(count));
    expect(delays).toEqual(delays.toSorted((one, other) => one - other));
    expect(delays.at(-1)).toBe(3_600_000);
  });
});

test('the message to a customer never reveals that a card is lost, stolen or suspected', () => {
  const generic = declineMessage('generic_decline');
  for (const code of [
    'lost_card',
    'stolen_card',
    'fraudulent',
    'pickup_card',
    'merchant_blacklist',
    'constructor',
    null,
  ])
    expect(declineMessage(code)).toBe(generic);
  expect(declineMessage('insufficient_funds')).toMatch(/insufficient funds/);
  expect(declineMessage('expired_card')).not.toMatch(/expired_card/);
});
