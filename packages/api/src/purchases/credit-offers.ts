/** `…/billing/credits/offers`: prices of credits, for customers who are about to buy. */
import type { Catalogue } from '@sluice/domain/billing/catalogue';
import { z } from 'zod';
import { accountParams, moneyShape } from '../billing/billing-shapes.ts';
import { accountReadFailures } from '../http/fields.ts';
import type { ApiServer } from '../http/api-server.ts';

const types = ['llm', 'builder'] as const;

const creditOffer = z.object({
  credit_type: z.enum(types),
  multiple: z.int().meta({ description: 'A quantity is a multiple of it.' }),
  quantity_max: z.int(),
  price_of_multiple: moneyShape,
});

export function registerCreditOffers(
  scope: ApiServer,
  { catalogue }: { readonly catalogue: Catalogue },
): void {
  const { credits, currency } = catalogue;
  const offers = types.map((type) => ({
    credit_type: type,
    multiple: credits[type].multiple,
    quantity_max: credits[type].quantityMax,
    price_of_multiple: { amount: credits[type].amountPerMultiple, currency },
  }));
  scope.get(
    '/v1/accounts/:account_id/billing/credits/offers',
    {
      config: { access: { role: 'member' } },
      schema: {
        tags: ['billing'],
        summary: 'The prices of credits',
        params: accountParams,
        response: { 200: z.object({ offers: z.array(creditOffer) }), ...accountReadFailures },
      },
    },
    async (_request, reply) => reply.send({ offers }),
  );
}
