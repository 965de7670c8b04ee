/** Security: a mailed code is good once, for a while, for its address, and cannot be guessed. */
import { sql } from 'kysely';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { expectProblem } from '../../support/error-shapes.ts';
import { otherThan, startSignups, type SignupWorld } from '../support/signup-world.ts';

const TEN_MINUTES_MS = 600_000;

let world: SignupWorld;
beforeAll(async () => {
  world = await startSignups();
});
afterAll(() => world.close());

test('I36: fifty right codes at the same time make one account', async () => {
  const email = world.newAddress();
  const code = await world.startedCode(email);
  const answers = await Promise.all(Array.from({ length: 50 }, () => world.complete(email, code)));
  expect(answers.filter(({ statusCode }) => statusCode === 200)).toHaveLength(1);
  for (const answer of answers.filter(({ statusCode }) => statusCode !== 200))
    expectProblem(answer, 422, 'invalid_code');
  expect(await world.accountCountOf(email)).toBe(1);
});

test('I36: wrong, expired, used, unknown and spent codes have one answer', async () => {
  const used = world.newAddress();
  const usedCode = await world.startedCode(used);
  await world.complete(used, usedCode);
  const wrong = world.newAddress();
  const wrongCode = otherThan(await world.startedCode(wrong));
  const expired = world.newAddress();
  const expiredCode = await world.startedCode(expired);
  const bodies = [await world.complete(used, usedCode), await world.complete(wrong, wrongCode)];
  world.api.clock.nowMs += TEN_MINUTES_MS;
  bodies.push(
    await world.complete(expired, expiredCode),
    await world.complete(world.newAddress(), '123456'),
  );
  const shown = bodies.map((answer) => {
    const { errors, message } = expectProblem(answer, 422, 'invalid_code');
    return JSON.stringify({ errors, message });
  });
  expect(new Set(shown).size).toBe(1);
});

test('a code is good until ten minutes are over', async () => {
  const email = world.newAddress();
  const code = await world.startedCode(email);
  world.api.clock.nowMs += TEN_MINUTES_MS - 1;
  expect((await world.complete(email, code)).statusCode).toBe(200);
});

test('I36: after five wrong tries the right one is wrong too', async () => {
  const email = world.newAddress();
  const code = await world.startedCode(email);
  for (let tries = 0; tries < 5; tries += 1)
    expectProblem(await world.complete(email, otherThan(code)), 422, 'invalid_code');
  expectProblem(await world.complete(email, code), 422, 'invalid_code');
  expect(await world.accountCountOf(email)).toBe(0);
});

test('tries at the same time are not more than five', async () => {
  const email = world.newAddress();
  const code = await world.startedCode(email);
  const guesses = Array.from({ length: 40 }, () => world.complete(email, otherThan(code)));
  await Promise.all(guesses);
  const { rows } = await sql<{ attempts: number }>`
    select attempt_count as attempts from signups where email = ${email}`.execute(
    world.api.database,
  );
  expect(rows).toEqual([{ attempts: 5 }]);
  expectProblem(await world.complete(email, code), 422, 'invalid_code');
});

test('I36: a newer code takes the place of the older one', async () => {
  const email = world.newAddress();
  const older = await world.startedCode(email);
  let newer = await world.startedCode(email);
  // One in a million.
  if (newer === older) newer = await world.startedCode(email);
  expectProblem(await world.complete(email, older), 422, 'invalid_code');
  expect((await world.complete(email, newer)).statusCode).toBe(200);
});

test("one address' code is not good for another", async () => {
  const [one, other] = [world.newAddress(), world.newAddress()];
  const code = await world.startedCode(one);
  await world.startedCode(other);
  const answer = await world.complete(other, code);
  // Unless both drew the same six digits.
  if (answer.statusCode !== 200) expectProblem(answer, 422, 'invalid_code');
  expect(await world.accountCountOf(one)).toBe(0);
});

test.each([
  ['IP address', () => '10.8.0.1'],
  ['network of IPv6', (tries: number) => `2001:db8::${tries.toString(16)}`],
])('one %s tries a hundred codes an hour', async (_what, ipOf) => {
  for (let tries = 0; tries < 100; tries += 1)
    await world.complete(world.newAddress(), '000000', ipOf(tries));
  const answer = await world.complete(world.newAddress(), '000000', ipOf(100));
  expectProblem(answer, 429, 'too_many_attempts');
  expect(Number(answer.headers['retry-after'])).toBeGreaterThan(0);
});

test('an IP address starts twenty signups an hour, also at the same time', async () => {
  const ip = world.newIp();
  const answers = await Promise.all(
    Array.from({ length: 30 }, () => world.start(world.newAddress(), ip)),
  );
  const refused = answers.filter(({ statusCode }) => statusCode !== 200);
  expect(refused).toHaveLength(10);
  for (const answer of refused) {
    expectProblem(answer, 429, 'rate_limited');
    expect(answer.headers['retry-after']).toBe('3600');
  }
  world.api.clock.nowMs += 3_600_000;
  expect((await world.start(world.newAddress(), ip)).statusCode).toBe(200);
});
