/** Points of a chart, with one value for each step. Pure. */
import type { AnswerOf } from '../client/operations.ts';

/** Empty steps are left out. */
export type Statistics = Pick<
  AnswerOf<'get', '/v1/statistics'>,
  'step_seconds' | 'from' | 'to' | 'series'
>;

export interface StepValue {
  readonly atMs: number;
  readonly value: number;
}

/** Of the first series, with a 0 for empty steps. Steps begin at multiples of their length, as the API counts them. */
export function stepValues({
  step_seconds: stepSeconds,
  from,
  to,
  series,
}: Statistics): StepValue[] {
  const stepMs = stepSeconds * 1_000;
  const values = new Map((series[0]?.points ?? []).map(({ at, value }) => [Date.parse(at), value]));
  const firstMs = Math.floor(Date.parse(from) / stepMs) * stepMs;
  const count = Math.max(0, Math.ceil((Date.parse(to) - firstMs) / stepMs));
  return Array.from({ length: count }, (_, index) => {
    const atMs = firstMs + index * stepMs;
    return { atMs, value: values.get(atMs) ?? 0 };
  });
}
