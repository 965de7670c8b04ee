/** The schema of the catalogue's file, and its conversion. A file that contradicts itself is refused here. */
import type { Catalogue } from '@sluice/domain/billing/catalogue';
import { z } from 'zod';

const name = z.string().min(1).max(100);
/** Ids that may stand in paths and bodies. */
const id = z.string().regex(/^[A-Za-z0-9_-]{1,100}$/);
const amount = z.int().min(0).max(1_000_000_000);
const count = z.int().min(0).max(1_000_000_000);
const interval = z.enum(['month', 'year']);
const days = z.int().min(1).max(36_500).nullable().default(null);

const plan = z.strictObject({
  id,
  name,
  product_type: id.default('platform'),
  tier: z.enum(['builder', 'essentials', 'premium', 'enterprise']),
  interval,
  amount,
  price_id: id,
  included: z.strictObject({
    llm: count.default(0),
    builder: count.default(0),
    inbox_previews: count.default(0),
  }),
  /** Of people that it includes. */
  profiles: count.default(0),
  features: z.array(name).default([]),
  retired: z.boolean().default(false),
});

const addon = z.strictObject({
  sku: id,
  addon: id,
  name,
  interval,
  amount,
  retired: z.boolean().default(false),
});

const pack = z.strictObject({
  id,
  quantity: count.min(1),
  amount: amount.min(1),
  expires_after_days: days,
});

const offer = z.strictObject({
  multiple: count.min(1),
  quantity_max: count.min(1),
  amount_per_multiple: amount.min(1),
  expires_after_days: days,
});

const coupon = z
  .strictObject({
    code: id,
    name,
    percent_off: z.number().gt(0).max(100).multipleOf(0.01).nullable().default(null),
    amount_off: amount.min(1).nullable().default(null),
    expires_at: z.iso.datetime().nullable().default(null),
    // As the payment provider has them: its own coupon of that name decides, the simulator's is made of these.
    duration: z.enum(['once', 'repeating', 'forever']).default('once'),
    duration_in_months: z.int().min(1).nullable().default(null),
    max_redemptions: z.int().min(1).nullable().default(null),
  })
  .refine((each) => (each.duration === 'repeating') === (each.duration_in_months !== null), {
    error: 'duration_in_months goes with the duration repeating, and with no other',
  })
  .refine((each) => (each.percent_off === null) !== (each.amount_off === null), {
    error: 'takes off either a percentage or an amount',
  });

const MONEY_MAX = Number.MAX_SAFE_INTEGER;

export const catalogueFile = z
  .strictObject({
    version: z.int().min(1),
    currency: z.string().regex(/^[a-z]{3}$/),
    plans: z.array(plan).min(1),
    addons: z.array(addon).default([]),
    packs: z.array(pack).min(1),
    credits: z.strictObject({ llm: offer, builder: offer }),
    coupons: z.array(coupon).default([]),
    /** Minor units a month for one beyond the profiles that the plan includes. */
    profile_amount_decimal: z
      .string()
      .regex(/^\d{1,9}(\.\d{1,12})?$/, 'must be digits, such as 0.04')
      .default('0'),
  })
  .superRefine((file, context) => {
    const once = (what: string, values: readonly string[]): void => {
      for (const value of new Set(values.filter((each, at) => values.indexOf(each) !== at)))
        context.addIssue({ code: 'custom', path: [what], message: `${value} is there twice` });
    };
    once(
      'plans',
      file.plans.map((each) => each.id),
    );
    once(
      'packs',
      file.packs.map((each) => each.id),
    );
    once(
      'coupons',
      file.coupons.map((each) => each.code),
    );
    // Each price of the payment provider may stand for one thing only.
    once('addons', [
      ...file.plans.map((each) => each.price_id),
      ...file.addons.map((each) => each.sku),
    ]);
    for (const type of ['llm', 'builder'] as const) {
      const { multiple, quantity_max: most, amount_per_multiple: price } = file.credits[type];
      if (most < multiple || (most / multiple) * price > MONEY_MAX)
        context.addIssue({
          code: 'custom',
          path: ['credits', type],
          message:
            'the greatest quantity must be at least one multiple, and its price a safe integer',
        });
    }
    if (!file.plans.some((each) => each.tier === 'builder'))
      context.addIssue({ code: 'custom', path: ['plans'], message: 'needs a Builder plan' });
  })
  .transform((file): Catalogue => ({
    version: file.version,
    currency: file.currency,
    profileAmountDecimal: file.profile_amount_decimal,
    plans: file.plans.map(({ product_type: productType, price_id: priceId, retired, ...rest }) => ({
      ...rest,
      productType,
      priceId,
      isRetired: retired,
    })),
    addons: file.addons.map(({ retired, ...rest }) => ({ ...rest, isRetired: retired })),
    packs: file.packs.map(({ expires_after_days: expiresAfterDays, ...rest }) => ({
      ...rest,
      expiresAfterDays,
    })),
    credits: { llm: toOffer(file.credits.llm), builder: toOffer(file.credits.builder) },
    coupons: file.coupons.map((each) => ({
      code: each.code,
      name: each.name,
      percentOff: each.percent_off,
      amountOff: each.amount_off,
      expiresAtMs: each.expires_at === null ? null : Date.parse(each.expires_at),
      duration: each.duration,
      durationMonths: each.duration_in_months,
      redemptionCountMax: each.max_redemptions,
    })),
  }));

const toOffer = (given: z.infer<typeof offer>): Catalogue['credits']['llm'] => ({
  multiple: given.multiple,
  quantityMax: given.quantity_max,
  amountPerMultiple: given.amount_per_multiple,
  expiresAfterDays: given.expires_after_days,
});
