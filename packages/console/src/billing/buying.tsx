/**
 * Buying in the page: a plan, an add-on, credits. The page asks for the price first; a double click is one purchase.
 */
import { useState } from 'react';
import type { Call } from '../client/call.ts';
import { get, post } from '../client/calls.ts';
import type { AnswerOf, BodyOf, PathParametersOf } from '../client/operations.ts';
import { useResource } from '../client/resource.ts';
import { useSession } from '../client/session.ts';
import { FormEnd } from '../forms/form-end.tsx';
import { useCallOnce } from '../forms/use-call-once.ts';
import { useWork } from '../forms/use-work.ts';
import { announce } from '../parts/announcer.tsx';
import { ListTable } from '../parts/list-table.tsx';
import { Dialog } from '../parts/dialog.tsx';
import { Shown } from '../parts/states.tsx';
import { countText, moneyText } from '../sentences/money-text.ts';
import { visibleText } from '../sentences/visible-text.ts';

type Plan = AnswerOf<'get', '/v1/accounts/{account_id}/billing/plans'>['plans'][number];
type Offer = AnswerOf<'get', '/v1/accounts/{account_id}/billing/credits/offers'>['offers'][number];

const PLAN = '/v1/accounts/{account_id}/billing/plans/{plan_id}';
const ADDONS = '/v1/accounts/{account_id}/billing/addons';
const CREDITS = '/v1/accounts/{account_id}/billing/credits/purchase';
type PlanId = PathParametersOf<'post', typeof PLAN>['plan_id'];
type Sku = BodyOf<'post', typeof ADDONS>['skus']['add'][number];

/** A purchase before its confirmation. */
interface Wish {
  /** As it ends the question: `Essentials for $100.00 a month`. */
  readonly what: string;
  readonly call: Call<unknown>;
  readonly isOfCredits: boolean;
}

export function Buying({
  rail,
  onBought,
}: {
  readonly rail: 'card' | 'invoiced';
  readonly onBought: () => void;
}) {
  const { account, capabilities } = useSession();
  const [wish, setWish] = useState<Wish>();
  const path = { account_id: account.id };
  const plans = useResource(get('/v1/accounts/{account_id}/billing/plans', { path }));
  const offers = useResource(get('/v1/accounts/{account_id}/billing/credits/offers', { path }));
  const isAllowed = capabilities.includes('billing.buy');
  const close = (): void => setWish(undefined);
  return (
    <section className="stack" aria-labelledby="buying">
      <h2 id="buying">Buy</h2>
      {!isAllowed && <p className="faint">A billing_admin or account_admin may buy.</p>}
      <Shown resource={plans} lines={4}>
        {({ plans: sold }) => <Plans plans={sold} isAllowed={isAllowed} onWish={setWish} />}
      </Shown>
      <Shown resource={offers} lines={2}>
        {({ offers: sold }) => (
          <CreditOffers offers={sold} isAllowed={isAllowed} onWish={setWish} />
        )}
      </Shown>
      {wish && (
        <Question
          wish={wish}
          rail={rail}
          onClose={close}
          onBought={() => {
            close();
            onBought();
          }}
        />
      )}
    </section>
  );
}

function Plans({
  plans,
  isAllowed,
  onWish,
}: {
  readonly plans: readonly Plan[];
  readonly isAllowed: boolean;
  readonly onWish: (wish: Wish) => void;
}) {
  const { account } = useSession();
  const addons = plans.find(({ current }) => current)?.addons.filter(({ retired }) => !retired);
  return (
    <ListTable caption="Plans and add-ons" heads={['Name', 'Price', 'Buy']}>
      {plans.map((plan) => (
        <tr key={plan.id}>
          <th scope="row">{visibleText(plan.name)}</th>
          <td>
            {moneyText(plan.amount)} a {plan.interval}
          </td>
          <td>
            {plan.current ? (
              'the plan now'
            ) : (
              <button
                type="button"
                disabled={!isAllowed || !plan.eligible}
                title={plan.ineligible_reason ?? undefined}
                aria-label={`Buy ${plan.name} by the ${plan.interval}`}
                onClick={() =>
                  onWish({
                    what: `${plan.name} for ${moneyText(plan.amount)} a ${plan.interval}`,
                    call: post(PLAN, {
                      path: { account_id: account.id, plan_id: plan.id as PlanId },
                      body: { quantity: 1 },
                    }),
                    isOfCredits: false,
                  })
                }
              >
                Buy …
              </button>
            )}
          </td>
        </tr>
      ))}
      {addons?.map((addon) => (
        <tr key={addon.sku}>
          <th scope="row">+ {visibleText(addon.name)}</th>
          <td>
            {moneyText(addon.amount)} a {addon.interval}
          </td>
          <td>
            <button
              type="button"
              disabled={!isAllowed}
              aria-label={`Add ${addon.name} by the ${addon.interval}`}
              onClick={() =>
                onWish({
                  what: `${addon.name} for ${moneyText(addon.amount)} a ${addon.interval}`,
                  call: post(ADDONS, {
                    path: { account_id: account.id },
                    body: { skus: { add: [addon.sku as Sku] } },
                  }),
                  isOfCredits: false,
                })
              }
            >
              Add …
            </button>
          </td>
        </tr>
      ))}
    </ListTable>
  );
}

function CreditOffers({
  offers,
  isAllowed,
  onWish,
}: {
  readonly offers: readonly Offer[];
  readonly isAllowed: boolean;
  readonly onWish: (wish: Wish) => void;
}) {
  const { account } = useSession();
  const [counts, setCounts] = useState<Readonly<Record<string, number>>>({});
  return (
    <ListTable caption="Credits" heads={['Credits', 'How many', 'Price', 'Buy']}>
      {offers.map((offer) => {
        const { credit_type: type, multiple, quantity_max: most } = offer;
        const quantity = counts[type] ?? multiple;
        const isSold = quantity > 0 && quantity <= most && quantity % multiple === 0;
        const { amount, currency } = offer.price_of_multiple;
        const price = moneyText({ amount: (quantity / multiple) * amount, currency });
        return (
          <tr key={type}>
            <th scope="row">{type}</th>
            <td>
              <input
                type="number"
                aria-label={`How many ${type} credits`}
                min={multiple}
                max={most}
                step={multiple}
                value={quantity}
                onInput={({ currentTarget }) =>
                  setCounts({ ...counts, [type]: Number(currentTarget.value) })
                }
              />
            </td>
            <td>{isSold ? price : `by ${countText(multiple)}, at most ${countText(most)}`}</td>
            <td>
              <button
                type="button"
                disabled={!isAllowed || !isSold}
                aria-label={`Buy ${type} credits`}
                onClick={() =>
                  onWish({
                    what: `${countText(quantity)} ${type} credits for ${price}`,
                    call: post(CREDITS, {
                      path: { account_id: account.id },
                      body: { [type]: { quantity } },
                    }),
                    isOfCredits: true,
                  })
                }
              >
                Buy …
              </button>
            </td>
          </tr>
        );
      })}
    </ListTable>
  );
}

function Question({
  wish,
  rail,
  onClose,
  onBought,
}: {
  readonly wish: Wish;
  readonly rail: 'card' | 'invoiced';
  readonly onClose: () => void;
  readonly onBought: () => void;
}) {
  const callOnce = useCallOnce();
  const { isRunning, problem, run } = useWork();
  const buy = (): void =>
    void run(async () => {
      await callOnce(wish.call);
      announce(`The purchase has begun: ${wish.what}`);
      onBought();
    });
  return (
    <Dialog title={`Buy ${wish.what}?`} onClose={onClose}>
      <p>
        {wish.isOfCredits && rail === 'card'
          ? 'You pay at the payment provider’s page, which the purchase leads to. The charge is made there, not before.'
          : 'The card on file is charged now, in proportion if a period has begun.'}
      </p>
      <FormEnd
        problem={problem}
        isRunning={isRunning}
        what={`Buy ${wish.what}`}
        onWish={buy}
        onClose={onClose}
      />
    </Dialog>
  );
}
