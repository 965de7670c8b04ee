/**
 * Test for a whole multiple of a number, in decimal digits. 0.3 is one of 0.1, though their binary quotient is not
 * whole.
 */
export function isMultiple(value: number, divisor: number): boolean {
  const [digits, exponent] = decimalOf(value);
  const [divisorDigits, divisorExponent] = decimalOf(divisor);
  const shared = Math.min(exponent, divisorExponent);
  return (
    (digits * 10n ** BigInt(exponent - shared)) %
      (divisorDigits * 10n ** BigInt(divisorExponent - shared)) ===
    0n
  );
}

/** `digits × 10 ^ exponent`, of the shortest text that is the number's: at most 17 digits, and 632 places between two. */
function decimalOf(value: number): [digits: bigint, exponent: number] {
  const [, whole = '0', fraction = '', exponent = '0'] =
    /^(-?\d+)(?:\.(\d+))?(?:e([+-]\d+))?$/.exec(String(value)) ?? [];
  return [BigInt(whole + fraction), Number(exponent) - fraction.length];
}
