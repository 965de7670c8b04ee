/** A call made byte for byte, and a check of intake. */
import { expect, vi } from 'vitest';
import { PIPELINES_AUTHORIZATION, type IntakeUnderTest } from './intake-under-test.ts';
import { openRaw } from './raw-http.ts';

/** The head of a strict track call, to the empty line; `lines` are further headers. */
export const callHead = (...lines: readonly string[]): string =>
  [
    'POST /v1/track HTTP/1.1',
    'Host: a',
    `Authorization: ${PIPELINES_AUTHORIZATION}`,
    'X-Strict-Mode: 1',
    ...lines,
    '',
    '',
  ].join('\r\n');

/** The events that came through the broker so far. */
export const eventsNamed = (intake: IntakeUnderTest, name: string) =>
  intake.operations.filter(
    (operation) => operation.type === 'event.track' && operation.name === name,
  );

let neighbourCount = 0;

/** A good call is taken, and has passed through the broker, so that all that was taken before it has too. */
export async function expectUnharmed(intake: IntakeUnderTest): Promise<void> {
  const event = `neighbour ${++neighbourCount}`;
  const body = JSON.stringify({ userId: 'u', event });
  const raw = openRaw(intake.port);
  raw.write(callHead(`Content-Length: ${body.length}`) + body);
  expect((await raw.answer()).status).toBe(200);
  raw.destroy();
  await vi.waitFor(() => expect(eventsNamed(intake, event)).toHaveLength(1), 20_000);
}
