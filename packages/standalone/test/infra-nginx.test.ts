/** `infra/proxy/nginx.conf`, checked against the services' settings. */
import { PIPELINES_BATCH_SIZE_BYTES_MAX } from '@sluice/domain/operations/limits';
import { describe, expect, test } from 'vitest';
import { defaultsOf, readInfra } from './infra-files.ts';

/** Idle connections of uWebSockets.js end after so long. */
const INTAKE_IDLE_SECONDS = 10;
/** The default of Fastify (`keepAliveTimeout`). */
const API_IDLE_SECONDS = 72;

describe('nginx', () => {
  const [intake = '', api = ''] = readInfra('proxy/nginx.conf').split('listen 8444;');
  const [rest = '', stream = ''] = intake.split('location = /v1/stream');
  const [calls = '', files = ''] = api.split('location = /v1/imports');
  const secondsOf = (text: string, name: string): number =>
    Number(new RegExp(`^\\s*${name} (\\d+)s;`, 'm').exec(text)?.[1]);

  test('takes the largest body that intake does, by a bound of its own in a stream', () => {
    expect(PIPELINES_BATCH_SIZE_BYTES_MAX).toBe(4 * 1024 * 1024);
    expect(rest).toMatch(/^\s*client_max_body_size 4m;/m);
    expect(stream).toMatch(/^\s*client_max_body_size 0;/m);
  });

  test('gives an idle connection up before the service does: a call on it would be answered 502', () => {
    expect(secondsOf(rest, 'keepalive_timeout')).toBeLessThan(INTAKE_IDLE_SECONDS);
    const [, ofApi = ''] = rest.split('upstream api {');
    expect(secondsOf(ofApi, 'keepalive_timeout')).toBeLessThan(API_IDLE_SECONDS);
  });

  test('sends a call of an absent intake to another one, and waits over two commit deadlines, under a minute', () => {
    const { INTAKE_COMMIT_DEADLINE_MS: deadlineMs = 0 } = defaultsOf('intake');
    expect(rest).toMatch(/^\s*proxy_next_upstream error timeout;/m);
    expect(secondsOf(rest, 'proxy_connect_timeout')).toBeLessThanOrEqual(2);
    expect(secondsOf(rest, 'proxy_read_timeout') * 1_000).toBeGreaterThan(2 * deadlineMs);
    expect(secondsOf(rest, 'proxy_read_timeout')).toBeLessThan(60);
  });

  test.each([
    ['intake', rest],
    ['the API', calls],
  ])('answers /metrics and /readyz of %s with 404, and forwards other paths', (_name, text) => {
    const [, pattern = '^$', answer] = /^\s*location ~ (\S+) \{ return (\d+); \}/m.exec(text) ?? [];
    expect(answer).toBe('404');
    for (const path of ['/metrics', '/readyz']) expect(path).toMatch(new RegExp(pattern));
    for (const path of ['/livez', '/v1/track', '/v1/metrics'])
      expect(path).not.toMatch(new RegExp(pattern));
  });

  test('waits for the API as long as its longest answers take', () => {
    const { PURCHASE_WAIT_MS: purchaseMs = 0, VENDOR_TIMEOUT_MS: vendorMs = 0 } = defaultsOf('api');
    expect(secondsOf(calls, 'proxy_read_timeout') * 1_000).toBeGreaterThan(purchaseMs + vendorMs);
  });

  test('streams files of any size to the API, and buffers other calls of up to 1 MB', () => {
    expect(files).toMatch(/^\s*proxy_request_buffering off;/m);
    expect(files).toMatch(/^\s*client_max_body_size 0;/m);
    expect(calls).toMatch(/^\s*client_max_body_size 1m;/m);
    expect(calls).not.toContain('proxy_request_buffering');
  });

  test('sends the address of the caller to the API in place of the caller’s X-Forwarded-For', () => {
    expect(calls).toMatch(/^\s*proxy_set_header X-Forwarded-For \$remote_addr;/m);
    expect(files).not.toContain('proxy_set_header');
  });

  test('shows no version of a server', () => {
    expect(rest).toMatch(/^ {2}server_tokens off;/m);
    expect(rest).toMatch(/^ {2}proxy_hide_header uWebSockets;/m);
    // A level with one of its own would not have the common one.
    expect((intake + api).match(/proxy_hide_header/g)).toHaveLength(1);
  });

  test('writes no path down, for people are named in it', () => {
    expect(rest).toMatch(/^\s*access_log off;/m);
    expect(rest).toMatch(/^\s*error_log stderr crit;/m);
  });

  test('waits longer than intake does for a silent stream, so that intake ends it with a reason', () => {
    const { INTAKE_STREAM_IDLE_TIMEOUT_MS: idleMs = 0 } = defaultsOf('intake');
    expect(secondsOf(stream, 'client_body_timeout') * 1_000).toBeGreaterThan(idleMs);
  });
});
