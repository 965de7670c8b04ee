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
  INTENT_REPLAY_MS_MAX,
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

  test.each([
    ['addons', 'card', 'addons'],
    ['addons', 'invoiced', 'addons'],
    ['checkout', 'card', 'checkout'],
    ['checkout', 'invoiced', 'checkout'],
    ['credits', 'card', 'card'],
    ['inbox_previews', 'card', 'card'],
    ['credits', 'invoiced', 'invoiced'],
    ['inbox_previews', 'invoiced', 'invoiced'],
  ] as const)('of %s by %s is in the lane %s', (kind, rail, lane) => {
    expect(laneOf(kind, rail)).toBe(lane);
  });

  test('of another kind, content or member is another purchase, and the order of members has no meaning', () => {
    const content = { type: 'llm', quantity: 100, skus: ['a'] };
    const same = fingerprintOf('credits', content);
    expect(fingerprintOf('credits', { skus: ['a'], quantity: 100, type: 'llm' })).toBe(same);
    const others = [
      fingerprintOf('inbox_previews', content),
      fingerprintOf('credits', { ...content, type: 'builder' }),
      fingerprintOf('credits', { ...content, quantity: 200 }),
      fingerprintOf('credits', { ...content, skus: ['b'] }),
      fingerprintOf('credits', { ...content, skus: ['a', 'b'] }),
      fingerprintOf('credits', { kind: 'llm', quantity: 100, skus: ['a'] }),
    ];
    expect(new Set([same, ...others]).size).toBe(others.length + 1);
  });

  test('a checkout answers only a request for its plan, quantity and amount, and for its coupon if one is named', () => {
    const charged = { amount: 100, currency: 'usd' };
    const bought = { planId: 'p', couponCode: null, quantity: 1, charged };
    expect(judgeCheckout(bought, { planId: 'p', couponCode: null })).toBe('success');
    expect(judgeCheckout(bought, { planId: 'q', couponCode: null })).toBe('conflict');
    expect(judgeCheckout(bought, { planId: 'p', couponCode: null, quantity: 1 })).toBe('success');
    expect(judgeCheckout(bought, { planId: 'p', couponCode: null, quantity: 2 })).toBe('conflict');
    expect(judgeCheckout(bought, { planId: 'p', couponCode: 'C' })).toBe('conflict');
    const reduced = { ...bought, couponCode: 'C' };
    expect(judgeCheckout(reduced, { planId: 'p', couponCode: 'C' })).toBe('success');
    expect(judgeCheckout(reduced, { planId: 'p', couponCode: 'D' })).toBe('conflict');
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

  test.each([
    ['credits', 'invoiced', 'customer invoice line finalize pay'],
    ['inbox_previews', 'card', 'customer invoice line finalize'],
    ['addons', 'card', 'customer inspect apply'],
    ['checkout', 'invoiced', 'customer subscribe'],
  ] as const)('of %s by %s have their order: %s', (kind, rail, order) => {
    const steps: StepRecord[] = [];
    const next = () => nextMove({ kind, rail, isExpired: false }, steps);
    for (let move = next(); move.move === 'do' && steps.length < 9; move = next())
      steps.push({ step: move.step, attempt: move.attempt, state: 'done' });
    expect(steps.map(({ step }) => step).join(' ')).toBe(order);
    expect(next()).toEqual(
      kind === 'addons' || kind === 'checkout'
        ? { move: 'finish', status: 'success' }
        : { move: 'wait-for-payment' },
    );
  });

  test.each([
    ['invoiced', 'pay', 'declined', 'declined'],
    ['invoiced', 'pay', 'refused', 'failed'],
    ['invoiced', 'line', 'refused', 'failed'],
    ['card', 'finalize', 'done', 'failed'],
  ] as const)(
    'by %s whose %s is %s make the invoice void, and then end as %s',
    (rail, last, state, status) => {
      const workflow = { kind: 'credits', rail, isExpired: true } as const;
      const order = ['customer', 'invoice', 'line', 'finalize', 'pay'] as const;
      const steps = order
        .slice(0, order.indexOf(last) + 1)
        .map((step) => ({ step, attempt: 1, state: step === last ? state : ('done' as const) }));
      const voided = (made: StepState, attempt: number): StepRecord => ({
        step: 'void',
        attempt,
        state: made,
      });
      const next = (...records: StepRecord[]) => nextMove(workflow, [...steps, ...records]);
      expect(next()).toEqual({ move: 'do', step: 'void', attempt: 1 });
      expect(next(voided('intent', 1))).toEqual({ move: 'do', step: 'void', attempt: 1 });
      expect(next(voided('absent', 1))).toEqual({ move: 'do', step: 'void', attempt: 2 });
      const all = [voided('absent', 1), voided('done', 2)];
      expect(next(...all)).toEqual({ move: 'finish', status });
    },
  );

  test.each([
    ['credits', 'invoiced', 'invoice', 'declined', 'declined'],
    ['credits', 'invoiced', 'invoice', 'refused', 'failed'],
    ['addons', 'card', 'apply', 'declined', 'declined'],
    ['checkout', 'card', 'subscribe', 'declined', 'failed'],
    ['checkout', 'card', 'subscribe', 'refused', 'failed'],
  ] as const)('of %s by %s whose %s is %s end as %s', (kind, rail, step, state, status) => {
    const done = ['customer', 'inspect'] as const;
    const steps: StepRecord[] = done.map((each) => ({ step: each, attempt: 1, state: 'done' }));
    steps.push({ step, attempt: 1, state });
    expect(nextMove({ kind, rail, isExpired: false }, steps)).toEqual({ move: 'finish', status });
  });

  test('an attempt without a known outcome has the same key again, and the next attempt another', () => {
    const at = (state: StepState, attempt = 1): StepRecord => ({ step: 'pay', attempt, state });
    const before = (['customer', 'invoice', 'line', 'finalize'] as const).map(
      (step): StepRecord => ({ step, attempt: 1, state: 'done' }),
    );
    const workflow = { kind: 'credits', rail: 'invoiced', isExpired: false } as const;
    const next = (...records: StepRecord[]) => nextMove(workflow, [...before, ...records]);
    expect(next(at('intent'))).toEqual({ move: 'do', step: 'pay', attempt: 1 });
    expect(next(at('absent'))).toEqual({ move: 'do', step: 'pay', attempt: 2 });
    // In any order of the records the latest attempt counts.
    expect(next(at('intent', 2), at('absent'))).toEqual({ move: 'do', step: 'pay', attempt: 2 });
    expect(next(at('absent'), at('intent', 2))).toEqual({ move: 'do', step: 'pay', attempt: 2 });
    expect(next(at('absent'), at('done', 2))).toEqual({ move: 'wait-for-payment' });
    expect(idempotencyKey('run_1', 'pay', 2)).toBe('run_1:pay:2');
  });

  test('an intent is not called again once the payment provider may have forgotten its key', () => {
    const forgottenMs = 24 * 3_600_000;
    expect(INTENT_REPLAY_MS_MAX).toBeLessThan(forgottenMs);
    expect(INTENT_REPLAY_MS_MAX).toBeGreaterThan(forgottenMs / 2);
  });

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
    // A bank has its own time.
    expect(nextMove({ ...workflow, isExpired: true }, pay('done'))).toEqual({
      move: 'wait-for-payment',
    });
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
    // The attempts at the step before are its own.
    const done: StepRecord = { step: 'customer', attempt: 8, state: 'done' };
    const invoice: StepRecord = { step: 'invoice', attempt: 1, state: 'absent' };
    expect(nextMove(workflow, [...absent(7), done, invoice])).toEqual({
      move: 'do',
      step: 'invoice',
      attempt: 2,
    });
  });

  test('the payment provider is asked again after growing waits, and then every hour', () => {
    const delays = Array.from({ length: 13 }, (_, count) => retryDelayMs(count) / 1_000);
    expect(delays).toEqual([0.2, 1, 3, 10, 30, 60, 120, 300, 600, 1_200, 3_600, 3_600, 3_600]);
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
