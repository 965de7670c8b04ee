/** What a ratio is wanted to reach, and whether it does. */

/** `atLeast` where more is better, `atMost` where less is. The bound itself is met. */
export type Bar = { readonly atLeast: number } | { readonly atMost: number };

export type Bars = Readonly<Record<string, Bar>>;

export type Verdict = 'met' | 'missed';

export function judge(ratio: number, bar: Bar): Verdict {
  return ('atLeast' in bar ? ratio >= bar.atLeast : ratio <= bar.atMost) ? 'met' : 'missed';
}

export const describeBar = (bar: Bar): string =>
  'atLeast' in bar ? `≥ ${bar.atLeast}` : `≤ ${bar.atMost}`;
