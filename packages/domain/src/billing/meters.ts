/**
 * Usage of an account's plan, and overage. Profiles are counted and paid for afterwards. Credits are paid for before
 * they are spent, so they have no overage.
 */
import type { Catalogue, CreditKind, Plan } from './catalogue.ts';
import type { Money } from '../values/money.ts';

export const METERS = ['profiles', 'inbox_previews', 'llm', 'builder'] as const;
export type Meter = (typeof METERS)[number];

export interface MeterLine {
  readonly meter: Meter;
  readonly included: number;
  readonly used: number;
  /** The use beyond the included amount, to be paid for. */
  readonly overage: number;
  /** Minor units, as decimal digits. */
  readonly unitAmountDecimal: string;
  readonly amount: Money;
}

/** @param plan - undefined if the catalogue no longer has it; then all use is overage. */
export function readMeters(
  catalogue: Pick<Catalogue, 'currency' | 'profileAmountDecimal'>,
  plan: Pick<Plan, 'included' | 'profiles'> | undefined,
  used: Readonly<Record<Meter, number>>,
): MeterLine[] {
  const { currency, profileAmountDecimal } = catalogue;
  return METERS.map((meter) => {
    const included = meter === 'profiles' ? (plan?.profiles ?? 0) : includedOf(plan, meter);
    const overage = meter === 'profiles' ? Math.max(0, used[meter] - included) : 0;
    const unitAmountDecimal = meter === 'profiles' ? profileAmountDecimal : '0';
    const amount = { amount: priceUnits(overage, unitAmountDecimal), currency };
    return { meter, included, used: used[meter], overage, unitAmountDecimal, amount };
  });
}

const includedOf = (plan: Pick<Plan, 'included'> | undefined, kind: CreditKind): number =>
  plan?.included[kind] ?? 0;

/**
 * `count` units at a price below a minor unit, rounded once, half up.
 *
 * @param unitAmountDecimal - digits, optionally with a dot and more digits.
 */
export function priceUnits(count: number, unitAmountDecimal: string): number {
  const [whole = '0', fraction = ''] = unitAmountDecimal.split('.');
  const scale = 10n ** BigInt(fraction.length);
  // Exact: a double has no 0.1.
  const numerator = BigInt(count) * BigInt(whole + fraction);
  return Number((2n * numerator + scale) / (2n * scale));
}
