import { afterEach, expect, test, vi } from 'vitest';
import { RequestFailed, send } from '../../src/client/request.ts';

afterEach(() => {
  vi.unstubAllGlobals();
});

async function failureOf(answer: Response): Promise<RequestFailed> {
  vi.stubGlobal('document', { visibilityState: 'visible' });
  vi.stubGlobal('fetch', async () => answer);
  const failure: unknown = await send('http://console.test/v1/any', { method: 'get' }).catch(
    (error: unknown) => error,
  );
  if (!(failure instanceof RequestFailed)) throw new Error('the call did not fail');
  return failure;
}

test('a refusal keeps the text, the status and the headers of the answer', async () => {
  const text =
    '{"code":"rate_limited","detail":"wait","errors":[{"field":"a"}],"meta":{"request_id":"r1"}}';
  const failure = await failureOf(
    new Response(text, { status: 429, headers: { 'retry-after': '7', 'x-request-id': 'r1' } }),
  );
  expect(failure).toMatchObject({
    ...{ message: 'wait', status: 429, code: 'rate_limited', requestId: 'r1' },
    ...{ retryAfterSeconds: 7, answer: { text } },
  });
  expect(failure.answer?.headers.get('retry-after')).toBe('7');
});

test.each(['', '<html>', 'null', '[1'])('a refusal whose body is %j keeps it', async (text) => {
  const failure = await failureOf(new Response(text, { status: 502 }));
  expect(failure).toMatchObject({ status: 502, code: 'unknown', answer: { text } });
});
