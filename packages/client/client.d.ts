/**
 * Typed client of Sluice. Paths, bodies and answers come from the description that the API serves at `/openapi.json`.
 *
 * ```
 * const api = createApiClient({ url: 'http://localhost:3000', token: process.env.SLUICE_KEY });
 * const { reporting_webhooks } = await resultOf(api.GET('/v1/reporting_webhooks'));
 * ```
 */
import type { Client, ClientOptions } from 'openapi-fetch';
import type { ApiPath, components, IntakePath, paths } from './schema.js';

export type { ApiPath, components, IntakePath, operations, paths } from './schema.js';

/** The body of every failure. */
export type Problem = components['schemas']['Problem'];

export type ApiClient = Client<Pick<paths, ApiPath>>;
export type IntakeClient = Client<Pick<paths, IntakePath>>;

interface Options extends Pick<ClientOptions, 'fetch'> {
  /** Without a path: `https://api.example.com`. */
  readonly url: string;
}

export interface ApiClientOptions extends Options {
  /** A key of a workspace, or a token of an account. Absent if the user is signed in by a cookie. */
  readonly token?: string | undefined;
}

interface IntakeOptions extends Options {
  /**
   * True sends `X-Strict-Mode`: a wrong call is refused with 400. Without it, the Pipelines API answers 200 and the
   * issues log has the reason, and the Track API corrects some values.
   */
  readonly isStrict?: boolean;
}

export interface PipelinesOptions extends IntakeOptions {
  readonly writeKey: string;
}

export interface TrackOptions extends IntakeOptions {
  readonly siteId: string;
  readonly apiKey: string;
}

/** A client of the API. Each POST and PUT that changes something has an `Idempotency-Key`, so a call that is sent again takes effect once. A dry run changes nothing. */
export function createApiClient(options: ApiClientOptions): ApiClient;

/** A client of intake: of the Pipelines API with a write key, of the Track API with a site id and its key. */
export function createIntakeClient(options: PipelinesOptions | TrackOptions): IntakeClient;

/**
 * A call that was answered with a failure. The message is the answer's.
 *
 * @public
 */
export class CallFailed extends Error {
  /** Of HTTP. */
  readonly status: number;
  /** As `docs/reference/errors.md` lists it; undefined if the answer is not Sluice's. */
  readonly code: string | undefined;
  /** For the operator of the installation. */
  readonly requestId: string | undefined;
  readonly problem: Problem | undefined;
  /** Seconds after which it may be sent again, if the answer has them. */
  readonly retryAfterSeconds: number | undefined;
}

/**
 * @returns the body of the answer.
 * @throws CallFailed, and the errors of `fetch`
 */
export function resultOf<Data>(
  call: Promise<{ data?: Data; error?: unknown; response: Response }>,
): Promise<Data>;
