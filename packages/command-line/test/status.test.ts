import { expect, test } from 'vitest';
import { parseMetrics } from '../src/status.ts';

test('metrics of ours are read, those with labels summed', () => {
  const page = [
    '# HELP sluice_queued_envelopes Envelopes',
    'sluice_queued_envelopes{service="worker"} 3',
    'sluice_worker_attempts_total{outcome="delivered",service="worker"} 5',
    'sluice_worker_attempts_total{outcome="timeout",service="worker"} 2',
    'process_cpu_seconds_total{service="worker"} 9',
  ].join('\n');
  expect(parseMetrics(page)).toEqual({
    sluice_queued_envelopes: 3,
    sluice_worker_attempts_total: 7,
  });
});
