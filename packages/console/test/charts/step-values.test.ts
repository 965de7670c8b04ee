/** The steps of a chart: each step has one value, also if the API sent few values. */
import { expect, test } from 'vitest';
import { stepValues } from '../../src/charts/step-values.ts';

test('a step without anything is 0, and the step that is not over is there', () => {
  const values = stepValues({
    step_seconds: 3_600,
    from: '2026-11-25T10:20:00.000Z',
    to: '2026-11-25T13:00:00.001Z',
    series: [
      {
        name: null,
        webhook_id: null,
        points: [
          { at: '2026-11-25T11:00:00.000Z', value: 7 },
          { at: '2026-11-25T13:00:00.000Z', value: 1 },
        ],
      },
    ],
  });
  expect(
    values.map(({ atMs, value }) => [new Date(atMs).toISOString().slice(11, 16), value]),
  ).toEqual([
    ['10:00', 0],
    ['11:00', 7],
    ['12:00', 0],
    ['13:00', 1],
  ]);
});

test('without any series all steps are 0', () => {
  const range = { from: '2026-11-25T10:00:00Z', to: '2026-11-25T10:02:00Z' };
  expect(stepValues({ step_seconds: 60, ...range, series: [] }).map(({ value }) => value)).toEqual([
    0, 0,
  ]);
});
