/**
 * Counts the calls of the payment vendor by outcome, for `/metrics`. It wraps the port, so that no caller has to
 * count.
 */
import type { Vendor, VendorResult } from './port/vendor.ts';

type Call = (...input: unknown[]) => Promise<VendorResult<unknown>>;

/** The same vendor; `counts` goes up by outcome: `ok`, `declined`, `refused`, `unknown`. */
export function countVendorCalls(vendor: Vendor, counts: Map<string, number>): Vendor {
  const counted = Object.entries(vendor).map(([name, call]) => [
    name,
    async (...input: unknown[]) => {
      const result = await (call as Call)(...input);
      counts.set(result.outcome, (counts.get(result.outcome) ?? 0) + 1);
      return result;
    },
  ]);
  return Object.fromEntries(counted) as Vendor;
}
