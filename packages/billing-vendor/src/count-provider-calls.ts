/**
 * Counts the calls of the payment provider by outcome, for `/metrics`. It wraps the port, so that no caller has to
 * count.
 */
import type { PaymentProvider, ProviderResult } from './port/payment-provider.ts';

type Call = (...input: unknown[]) => Promise<ProviderResult<unknown>>;

/** The same payment provider; `counts` goes up by outcome (`ok`, `declined`, `refused`, `unknown`). */
export function countProviderCalls(
  provider: PaymentProvider,
  counts: Map<string, number>,
): PaymentProvider {
  const counted = Object.entries(provider).map(([name, call]) => [
    name,
    async (...input: unknown[]) => {
      const result = await (call as Call)(...input);
      counts.set(result.outcome, (counts.get(result.outcome) ?? 0) + 1);
      return result;
    },
  ]);
  return Object.fromEntries(counted) as PaymentProvider;
}
