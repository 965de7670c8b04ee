/**
 * The members of a failure that known clients read (ingestion-conventions.md §5.4, §6). Each reader throws if it finds
 * no message. Written from their sources, not from ours.
 */
import { expect } from 'vitest';

interface Answer {
  readonly statusCode: number;
  readonly headers: Record<string, unknown>;
  readonly body: string;
  /** Of an answer to `inject`: its request. */
  readonly raw?: {
    readonly req: { readonly method?: string | undefined; readonly url?: string | undefined };
  };
  json(): unknown;
}

/** `errors[{detail, status}]`, in which status is text. 422 adds a place. */
function readShapeA(body: Record<string, unknown>): string {
  const errors = body['errors'] as {
    detail: string;
    status: string;
    source?: { pointer: string };
  }[];
  expect(errors.length).toBeGreaterThan(0);
  for (const error of errors) {
    expect(error.detail).toEqual(expect.any(String));
    expect(error.status).toMatch(/^\d{3}$/);
    if (error.status === '422') expect(error.source?.pointer).toEqual(expect.any(String));
  }
  return errors.map((error) => error.detail).join('; ');
}

/** `meta.error`: the Ruby and Go clients read only this, the Node client reads it first. */
function readShapeB(body: Record<string, unknown>): string {
  const { error } = body['meta'] as { error: string };
  expect(error).toEqual(expect.any(String));
  expect(error).not.toBe('');
  return error;
}

/** The Python data pipelines client takes both without asking whether they are there. */
function readCodeAndMessage(body: Record<string, unknown>): string {
  expect(body['code']).toMatch(/^[a-z_]+$/);
  return body['message'] as string;
}

/** Expects a failure that every known client can read, all of them the same text; returns its body. */
export function expectProblem(answer: Answer, status: number, code: string) {
  const { method, url } = answer.raw?.req ?? {};
  expect(answer.statusCode, `${method} ${url}: ${answer.body}`).toBe(status);
  expect(answer.headers['content-type']).toBe('application/problem+json; charset=utf-8');
  const body = answer.json() as Record<string, unknown>;
  expect(body).toMatchObject({ status, code, detail: body['message'] });
  expect(String(body['type']).endsWith(code)).toBe(true);
  expect(readShapeB(body)).toBe(readCodeAndMessage(body));
  expect(readShapeA(body)).toBe(readShapeB(body));
  expect((body['meta'] as Record<string, unknown>)['request_id']).toBe(
    answer.headers['x-request-id'],
  );
  expect(answer.headers['cache-control']).toBe('no-store');
  return body as {
    message: string;
    errors: {
      field: string | null;
      reason: string;
      message: string;
      source?: { pointer?: string; parameter?: string };
    }[];
  };
}
