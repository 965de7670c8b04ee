import {
  FAILURE_CLASSES,
  isListedFailure,
  isSuccessStatus,
  type FailureClass,
} from '@sluice/domain/delivery/delivery-failure';
import { expect, test } from 'vitest';

const STATUSES = Array.from({ length: 900 }, (_, index) => index + 100);

test('only the statuses 200 to 299 are a success', () => {
  expect(STATUSES.filter(isSuccessStatus)).toEqual(
    Array.from({ length: 100 }, (_, index) => index + 200),
  );
});

test('only the statuses that the spec lists wait an hour', () => {
  const listed = STATUSES.filter((status) => isListedFailure({ failure: 'status', status }));
  expect(listed).toEqual([400, 401, 402, 403, 404, 405, 410, 429, 500, 502, 521]);
});

test('only the connection failures that the spec lists wait an hour', () => {
  const classes = Object.keys(FAILURE_CLASSES) as FailureClass[];
  expect(classes.filter((failure) => isListedFailure({ failure, status: null }))).toEqual([
    'end_of_file',
    'misbehaving_server',
    'connection_refused',
    'connection_reset',
    'tls_verification',
  ]);
});

test('a connection that broke in the middle of a 2xx answer waits by its failure, not by its status', () => {
  expect(isListedFailure({ failure: 'connection_reset', status: 200 })).toBe(true);
  expect(isListedFailure({ failure: 'timeout', status: 200 })).toBe(false);
});
