/** Bars of ratios, and the judgement of a measured ratio. */

/** `atLeast` if more is better, `atMost` if less is. A ratio equal to the bound meets it. */
export type Bar = { readonly atLeast: number } | { readonly atMost: number };

export type Bars = Readonly<Record<string, Bar>>;

export type Verdict = 'met' | 'missed';

export function judge(ratio: number, bar: Bar): Verdict {
  return ('atLeast' in bar ? ratio >= bar.atLeast : ratio <= bar.atMost) ? 'met' : 'missed';
}

export const describeBar = (bar: Bar): string =>
  'atLeast' in bar ? `≥ ${bar.atLeast}` : `≤ ${bar.atMost}`;
