/**
 * A program that is let in by a user: `/v1/device_logins` (RFC 8628). `sluice login` uses it, and no other program is
 * documented, so the reference leaves it out.
 *
 *   the program asks → a secret for itself, and a code of eight letters for the user → the user types the code in the
 *   console (`device-approval.ts`) → the program, which asks every 5 seconds, gets its credentials, once
 *
 * The code alone does not open anything: the user who types it gives rights away. The secret has 256 bits. The console
 * shows the name of the program's machine to the user, so the name has no blanks and cannot be a sentence.
 */
import type { Database } from '@sluice/database/connection/connection';
import {
  DEVICE_LOGIN_MINUTES_MAX,
  DEVICE_POLL_SECONDS,
  type DeviceCredentials,
  pollDeviceLogin,
  startDeviceLogin,
} from '@sluice/database/users/device-logins';
import { endProgramOfToken } from '@sluice/database/users/programs';
import { callerNetwork } from '@sluice/domain/delivery/network-address';
import { hashSecret, newKey, newServiceAccountToken } from '@sluice/platform/secrets/secrets';
import type { FastifyRequest } from 'fastify';
import { randomBytes, randomInt } from 'node:crypto';
import { z } from 'zod';
import { CallLimit, takeCallsIn } from '../auth/call-limit.ts';
import type { ApiServer } from '../http/api-server.ts';
import { sendProblem } from '../http/error-handling.ts';
import type { Problem } from '../http/problem.ts';
import { returnOrigin } from './return-address.ts';
import { callOf, HIDDEN } from './console-call.ts';

export interface DeviceLoginEffects {
  readonly database: Database;
  readonly now: () => number;
  /** The address of the console (`CONSOLE_URL`). If absent, it is the address of the call. */
  readonly consoleUrl?: string;
}

const HOUR_MS = 3_600_000;
const STARTS_PER_HOUR_AND_IP = 30;
/** Ten programs that ask for ten minutes. */
const POLLS_PER_HOUR_AND_IP = 1_200;
const SECRET_SIZE_BYTES = 32;
/** Without vowels, so that no word comes of it, and without letters that look alike (RFC 8628 §6.1): 34 bits of eight letters. */
const LETTERS = 'BCDFGHJKLMNPQRSTVWXZ';
const CODE_LENGTH = 8;
const DRAWS_MAX = 5;
const TOKEN_LENGTH_MAX = 1_024;

const startInput = z.strictObject({
  client_name: z
    .string()
    .regex(/^[A-Za-z0-9][A-Za-z0-9._-]{0,62}$/, 'must be the name of a machine, without blanks'),
});
const revocationInput = z.strictObject({ token: z.string().min(1).max(TOKEN_LENGTH_MAX) });
const pollInput = z.strictObject({ device_code: z.string().regex(/^[\w-]{43}$/) });

/** On a scope without a guard, whose answers are not kept. */
export function registerDeviceLogin(scope: ApiServer, effects: DeviceLoginEffects): void {
  const { database, now, consoleUrl } = effects;
  const limitOf = (name: string, countMax: number) =>
    new CallLimit({ name, countMax, windowMs: HOUR_MS, now, takeCalls: takeCallsIn(database) });
  const starts = limitOf('device login from', STARTS_PER_HOUR_AND_IP);
  const polls = limitOf('device login asked from', POLLS_PER_HOUR_AND_IP);
  const refuse = async (
    limit: CallLimit,
    request: FastifyRequest,
  ): Promise<Problem | undefined> => {
    const { isExceeded, resetSeconds } = await limit.take(callerNetwork(request.ip));
    return isExceeded ? { ...TOO_MANY, retryAfterSeconds: resetSeconds } : undefined;
  };

  scope.post(
    '/v1/device_logins',
    { schema: { ...HIDDEN, body: startInput } },
    async (request, reply) => {
      const refusal = await refuse(starts, request);
      if (refusal) return sendProblem(request, reply, refusal);
      const deviceCode = randomBytes(SECRET_SIZE_BYTES).toString('base64url');
      const started = { deviceHash: hashSecret(deviceCode), ipAddr: request.ip };
      const clientName = request.body.client_name;
      for (let draw = 0; draw < DRAWS_MAX; draw += 1) {
        const code = newUserCode();
        const codeHash = hashUserCode(code);
        if (!(await startDeviceLogin(database, { ...started, codeHash, clientName }))) continue;
        return reply.send({
          device_code: deviceCode,
          user_code: `${code.slice(0, 4)}-${code.slice(4)}`,
          verification_uri: `${returnOrigin(consoleUrl, request)}/device`,
          expires_in: DEVICE_LOGIN_MINUTES_MAX * 60,
          interval: DEVICE_POLL_SECONDS,
        });
      }
      throw new Error('no code was drawn that no other program has');
    },
  );

  scope.post(
    '/v1/device_logins/token',
    { schema: { ...HIDDEN, body: pollInput } },
    async (request, reply) => {
      const refusal = await refuse(polls, request);
      if (refusal) return sendProblem(request, reply, refusal);
      const poll = await pollDeviceLogin(
        database,
        hashSecret(request.body.device_code),
        (isSandbox) => ({ token: newServiceAccountToken(isSandbox), key: newKey() }),
        callOf(request),
        now(),
      );
      switch (poll.outcome) {
        case 'approved':
          return reply.send(credentialsToWire(poll.credentials));
        case 'pending':
          return sendProblem(request, reply, notYet('authorization_pending', poll.intervalSeconds));
        case 'too_soon':
          return sendProblem(request, reply, notYet('slow_down', poll.intervalSeconds));
        case 'denied':
          return sendProblem(request, reply, DENIED);
        case 'over':
          return sendProblem(request, reply, OVER);
        case 'too_many':
          return sendProblem(request, reply, TOO_MANY_CREDENTIALS);
      }
    },
  );

  // The bearer of a token may end it. A wrong token is not a failure (RFC 7009).
  scope.post(
    '/v1/device_logins/revocation',
    { schema: { ...HIDDEN, body: revocationInput } },
    async (request, reply) => {
      const refusal = await refuse(polls, request);
      if (refusal) return sendProblem(request, reply, refusal);
      const hash = hashSecret(request.body.token);
      const isRevoked = await endProgramOfToken(database, hash, callOf(request), now());
      return reply.send({ revoked: isRevoked });
    },
  );
}

/** @param code - in upper case, without the dash. */
export const hashUserCode = (code: string): Buffer => hashSecret(`device login ${code}`);

function newUserCode(): string {
  let code = '';
  while (code.length < CODE_LENGTH) code += LETTERS[randomInt(LETTERS.length)];
  return code;
}

const credentialsToWire = (made: DeviceCredentials) => ({
  account_id: made.accountId,
  environment_id: made.environmentId,
  role: made.role,
  user: made.email,
  token: made.token,
  key: made.key,
  read_only_key: made.isKeyReadOnly,
  expires_at: made.expiresAt.toISOString(),
});

const refusedWith = (error: string, message: string): Problem => ({
  code: 'invalid_request',
  message,
  extensions: { error },
});

const notYet = (
  error: 'authorization_pending' | 'slow_down',
  intervalSeconds: number,
): Problem => ({
  code: 'invalid_request',
  message: `no user has decided yet: ask again in ${intervalSeconds} seconds`,
  extensions: { error, interval: intervalSeconds },
});

const DENIED = refusedWith(
  'access_denied',
  'the user did not let the program in; begin again to ask once more',
);

const OVER = refusedWith(
  'expired_token',
  'this login is over, since it is good once and for 10 minutes; begin again',
);

const TOO_MANY_CREDENTIALS: Problem = {
  code: 'limit_reached',
  message: 'the account has as many credentials in force as it may: revoke one, and begin again',
  extensions: { error: 'access_denied' },
};

const TOO_MANY: Problem = {
  code: 'too_many_attempts',
  message: 'too many logins of programs from this address; try again later',
};
