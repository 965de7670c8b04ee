/** Growth of a value: straight lines through samples (least squares). */

export interface Sample {
  readonly seconds: number;
  readonly value: number;
}

export interface Trend {
  /** Of the line, a second. */
  readonly slope: number;
  /** The line at the first and the last sample. */
  readonly first: number;
  readonly last: number;
}

/** @param samples at least two, at different times, in order. */
export function fitTrend(samples: readonly Sample[]): Trend {
  const mean = (of: (sample: Sample) => number) =>
    samples.reduce((sum, sample) => sum + of(sample), 0) / samples.length;
  const meanSeconds = mean(({ seconds }) => seconds);
  const meanValue = mean(({ value }) => value);
  const covariance = mean(({ seconds, value }) => (seconds - meanSeconds) * (value - meanValue));
  const slope = covariance / mean(({ seconds }) => (seconds - meanSeconds) ** 2);
  const at = (seconds: number) => meanValue + slope * (seconds - meanSeconds);
  return {
    slope,
    first: at(samples[0]?.seconds ?? NaN),
    last: at(samples.at(-1)?.seconds ?? NaN),
  };
}

/** Leaves out the first part, in which processes still warm up and grow. */
export const afterWarmUp = (samples: readonly Sample[], share: number): readonly Sample[] =>
  samples.slice(Math.floor(samples.length * share));
