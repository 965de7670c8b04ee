/**
 * Login of this program by a code from a user (RFC 8628).
 *
 * Until the user has decided, the program asks the API at the interval of its answers. The description of the API leaves
 * these calls out, because this program alone makes them. So the typed client does not have them.
 */
import { AppError, reasonOf } from '@sluice/domain/values/errors';

interface Calls {
  readonly apiUrl: string;
  readonly signal: AbortSignal;
}

export interface DeviceLoginDependencies extends Calls {
  /** Of this machine. */
  readonly hostName: string;
  /** Ends early once the signal is aborted. */
  readonly pause: (durationMs: number) => Promise<unknown>;
  /** Shows the user the address and the code to type there. */
  readonly show: (login: { readonly uri: string; readonly code: string }) => void;
}

/** The rights that the user has given to the program. */
export interface DeviceCredentials {
  readonly account_id: number;
  readonly environment_id: number | null;
  readonly role: string;
  readonly user: string;
  readonly token: string;
  readonly key: string | null;
  readonly read_only_key: boolean;
  readonly expires_at: string;
}

interface Started {
  readonly device_code: string;
  readonly user_code: string;
  readonly verification_uri: string;
  readonly expires_in: number;
  readonly interval: number;
}

/** As the API answers: one of the three, by its status. */
type Answer = Partial<Started & DeviceCredentials> & Failure;

interface Failure {
  readonly error?: string;
  readonly message?: string;
  readonly interval?: number;
  readonly revoked?: boolean;
}

const TIMEOUT_MS = 30_000;
/** Between two questions to an API that is away. */
const INTERVAL_SECONDS_MAX = 40;

/**
 * An API that is away while the user types, as in a restart, is asked again, ever less often (RFC 8628 §3.5).
 *
 * @throws AppError COMMAND_NOT_ALLOWED if the user does not let it in; COMMAND_FAILED if the time is over, or the command
 * is stopped; COMMAND_NOT_REACHED if the API is away at the start, or for the whole time.
 */
export async function loginByCode(deps: DeviceLoginDependencies): Promise<DeviceCredentials> {
  const start = await post(deps, '/v1/device_logins', {
    client_name: machineName(deps.hostName),
  });
  if (start.status !== 200) throw refused(start.body);
  const login = start.body as Started;
  deps.show({ uri: login.verification_uri, code: login.user_code });
  let intervalSeconds = login.interval;
  let waitedSeconds = 0;
  for (;;) {
    await deps.pause(intervalSeconds * 1_000);
    waitedSeconds += intervalSeconds;
    if (deps.signal.aborted)
      throw new AppError(
        'COMMAND_FAILED',
        'stopped before a user had decided; run sluice login again',
      );
    const asked = await post(deps, '/v1/device_logins/token', {
      device_code: login.device_code,
    }).catch((error: unknown) => {
      if (error instanceof AppError && error.code === 'COMMAND_NOT_REACHED') return error;
      throw error;
    });
    if (asked instanceof AppError || asked.status >= 500) {
      if (waitedSeconds >= login.expires_in)
        throw asked instanceof AppError ? asked : refused(asked.body);
      intervalSeconds = Math.min(2 * intervalSeconds, INTERVAL_SECONDS_MAX);
      continue;
    }
    const { status, body } = asked;
    if (status === 200) return body as DeviceCredentials;
    if (body.error !== 'authorization_pending' && body.error !== 'slow_down') throw refused(body);
    intervalSeconds = Math.max(body.interval ?? 0, intervalSeconds);
  }
}

/**
 * Ends this token and the key that was made with it.
 *
 * @returns false if it is no token of a login in force: another token stays in force.
 * @throws AppError COMMAND_NOT_REACHED if the API does not answer; COMMAND_FAILED if it refuses.
 */
export async function endLogin(calls: Calls, token: string): Promise<boolean> {
  const { status, body } = await post(calls, '/v1/device_logins/revocation', { token });
  if (status !== 200) throw refused(body);
  return body.revoked === true;
}

/** As the API takes it: one word, which no sentence fits into. */
const machineName = (hostName: string): string =>
  hostName
    .replaceAll(/[^A-Za-z0-9._-]/g, '-')
    .replace(/^[^A-Za-z0-9]+/, '')
    .slice(0, 63) || 'unnamed';

async function post(
  { apiUrl, signal }: Calls,
  path: string,
  body: object,
): Promise<{ readonly status: number; readonly body: Answer }> {
  try {
    const answer = await fetch(`${apiUrl}${path}`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify(body),
      signal: AbortSignal.any([signal, AbortSignal.timeout(TIMEOUT_MS)]),
    });
    return { status: answer.status, body: (await answer.json()) as Answer };
  } catch (cause) {
    if (signal.aborted)
      throw new AppError(
        'COMMAND_FAILED',
        'stopped before the API had answered; run the command again',
        { cause },
      );
    throw new AppError(
      'COMMAND_NOT_REACHED',
      `the API at ${apiUrl} does not answer (${reasonOf(cause)}); is --api-url (SLUICE_API_URL) right?`,
      { cause },
    );
  }
}

const refused = ({ error, message }: Failure): AppError =>
  new AppError(
    error === 'access_denied' ? 'COMMAND_NOT_ALLOWED' : 'COMMAND_FAILED',
    message ?? 'the API refused without a reason; is --api-url (SLUICE_API_URL) right?',
  );
