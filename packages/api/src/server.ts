/**
 * The HTTP edge of the API: one Fastify app from its effects, without opening a socket.
 *
 * Every request passes, in order: a request id, the headers every answer carries, 404 or 405 before the body is read,
 * the bearer key (under `/v1`), the body under its limit, the zod schemas, the handler, the response checked against
 * its schema. One file a route family declares routes. Two kinds of keys: one of the app API opens a workspace
 * (`authenticate.ts`), a service account's token opens an account (`account-guard.ts`). A user's session in the console
 * opens both.
 */
import type { PaymentProvider } from '@sluice/billing-vendor/port/payment-provider';
import type { ImportStorage } from '@sluice/database/imports/import-chunks';
import type { AuditLogExportKey } from '@sluice/database/audit/audit-log-exports';
import type { PurchaseKey } from '@sluice/database/billing/purchase-workflows';
import type { Database } from '@sluice/database/connection/connection';
import type { LaneKey } from '@sluice/database/delivery/lanes';
import type { Catalogue } from '@sluice/domain/billing/catalogue';
import { portTaken } from '@sluice/platform/process/port-taken';
import type { EncryptedText } from '@sluice/platform/secrets/encrypted-text';
import fastify, { LogController, type FastifyBaseLogger } from 'fastify';
import { serializerCompiler, type ZodTypeProvider } from 'fastify-type-provider-zod';
import { guardAccounts, refuseWhatIsBeyond } from './auth/account-guard.ts';
import { registerAccounts } from './accounts/accounts.ts';
import { registerCredentials } from './accounts/api-credentials.ts';
import { watchMethods } from './serving/allowed-methods.ts';
import { registerAuditLogExports, registerExportDownload } from './audit/audit-log-exports.ts';
import { registerAuditLogs } from './audit/audit-logs.ts';
import { authenticateCallers } from './auth/authenticate.ts';
import { registerBilling } from './billing-routes.ts';
import { registerConsoleFiles } from './console/console-files.ts';
import { registerPortalOpening, registerPortalSession } from './console/portal-session.ts';
import { registerConsoleSessions } from './console/console-sessions.ts';
import { registerDeviceApproval } from './console/device-approval.ts';
import { registerDeviceLogin } from './console/device-login.ts';
import { registerSecondFactor } from './console/second-factor.ts';
import { registerSignIn } from './console/sign-in.ts';
import { createSessionDoor } from './auth/session-door.ts';
import { refuseDemo } from './auth/demo-guard.ts';
import { boundBodyTime } from './serving/body-deadline.ts';
import { parseJsonBody } from './http/body.ts';
import { registerCustomers } from './people/customers.ts';
import { registerEnvironments } from './accounts/environments.ts';
import { handleClientError, handleError, sendProblem } from './http/error-handling.ts';
import { registerIdentityProvider } from './identity/identity-provider.ts';
import type { ReadTextRecords } from './identity/domain-records.ts';
import type { ProviderClient } from './identity/provider-client.ts';
import { registerProviderSignIn } from './identity/provider-sign-in.ts';
import { registerSignOut } from './identity/sign-out.ts';
import { registerImports } from './imports/imports.ts';
import { registerEventTrace } from './events/event-trace.ts';
import type { ApiServer } from './http/api-server.ts';
import { withoutPorts } from './serving/forwarded-for.ts';
import { keepAnswers, keepNoAnswers } from './http/idempotency.ts';
import { readFromReplica, type ReplicaReads } from './http/replica-reads.ts';
import { registerIngestionIssues } from './events/ingestion-issues.ts';
import { registerLaneOperations } from './webhooks/lane-operations.ts';
import { registerObjects } from './people/objects.ts';
import { registerLiveTail } from './events/live-tail.ts';
import { describeApi, serveReference } from './openapi/openapi.ts';
import { registerProbes, type ProbeEffects } from './serving/probes.ts';
import { registerApplications } from './publishing/applications.ts';
import { registerFeeds } from './publishing/feeds.ts';
import { registerEventTypes } from './publishing/event-types.ts';
import { registerPortalLinks } from './portal/portal-links.ts';
import { registerFleet } from './fleet/fleet.ts';
import type { FleetBroker } from './fleet/read-fleet.ts';
import { registerReceipts } from './billing/receipts.ts';
import { registerAttemptRequest } from './webhooks/attempt-request.ts';
import { registerReportingWebhooks } from './webhooks/reporting-webhooks.ts';
import { accountValidatorCompiler, validatorCompiler } from './http/request-validation.ts';
import type { SignupAdmission } from './accounts/signup-admission.ts';
import { registerSignup } from './accounts/signup.ts';
import { registerPartnerDecisions, registerStartupProgram } from './accounts/startup-program.ts';
import { registerTokenExchange } from './accounts/token-exchange.ts';
import type { RefusedCredentials } from './auth/refused-credentials.ts';
import type { TailHub } from './events/tail-hub.ts';
import type { TailPlaces } from './events/tail-places.ts';
import type { ServerStop } from './serving/server-stop.ts';
import type { RequestTracer } from './serving/trace-requests.ts';
import { registerProviderEvents } from './billing/provider-event-endpoint.ts';
import { registerUserChanges } from './accounts/user-changes.ts';
import { registerUsers } from './accounts/users.ts';
import { registerWebhookReplays } from './webhooks/webhook-replays.ts';
import { registerWebhookSecrets } from './webhooks/webhook-secrets.ts';
import { registerWorkspaces } from './events/workspaces.ts';
import { registerAttributeHistory } from './people/attribute-history.ts';
import { registerEventList } from './events/event-list.ts';
import { registerStatistics } from './events/statistics.ts';
import { registerWorkspaceDeliveries } from './webhooks/workspace-deliveries.ts';

/** A finished request, for metrics and the log. */
export interface RequestRecord {
  readonly method: string;
  /** The route's pattern, never the URL: that names people. */
  readonly route: string;
  readonly status: number;
  readonly durationMs: number;
}

/** All outside effects of the API, and the settings that its routes obey. Each route takes the ones that it needs. */
export interface ApiEffects {
  readonly database: Database;
  /** Absent: all is read from `database`. */
  readonly replicaReads?: ReplicaReads;
  readonly logger: FastifyBaseLogger;
  readonly now: () => number;
  /** Milliseconds that never go back, for caches and waits. */
  readonly monotonicNow: () => number;
  readonly newId: () => string;
  /** Signs access tokens, export links, purchase handles and cursors (`API_SECRET`). */
  readonly secret: string;
  readonly encryptedText: EncryptedText;
  /** Makes a secret that cannot be guessed. */
  readonly newSecret: () => string;

  readonly provider: PaymentProvider;
  readonly providerEventSecret: string;
  readonly providerTimeoutMs: number;
  readonly catalogue: Catalogue;
  readonly cardPaymentMs: number;
  readonly purchaseWaitMs: number;

  readonly wakeLane: (lane: LaneKey) => Promise<void>;
  readonly wakeExport: (key: AuditLogExportKey) => Promise<void>;
  readonly wakePurchaseWorkflow: (run: PurchaseKey) => Promise<void>;
  readonly wakeProviderEvents: () => Promise<void>;

  readonly openTail: TailHub['open'];
  readonly tailPlaces: TailPlaces;
  readonly tailDurationMsMax: number;

  readonly signupAdmission: SignupAdmission;
  /** Signs people in by the identity providers of accounts. */
  readonly providers: ProviderClient;
  /** Of the DNS, for the proof of email domains. */
  readonly readTextRecords: ReadTextRecords;
  /** The built console (`console-files.ts`). Absent: it is not served. */
  readonly consoleDirectory?: string;
  /** Intake's address in the samples of the console. */
  readonly consoleIntakeUrl: string;
  /** Browser's address of the console and the portal. Absent: the address of the call. */
  readonly consoleUrl?: string;
  /** The operator's own, whose admins see the installation in the console. */
  readonly operatorAccountIds: readonly number[];
  /** For a look at the shards. */
  readonly openFleetBroker: () => Promise<FleetBroker>;
  /** Names for which the demo's tokens are accepted from any address. */
  readonly demoHosts: readonly string[];
  readonly refusedCredentials: RefusedCredentials;
  readonly ratePerMinute: number;
  readonly keyRatePerSecond: number;
  readonly importSizeBytesMax: number;
  readonly unfinishedImportSizeBytesMax: number;
  readonly importStorage: ImportStorage;
  readonly giveUpAfterMs: number;
  readonly outgoingIpAddresses: readonly string[];
  /** Addresses and CIDR blocks whose `X-Forwarded-For` names the caller; limits count by it, the audit log keeps it. */
  readonly trustedProxies: readonly string[];

  readonly checkReadiness: ProbeEffects['checkReadiness'];
  readonly renderMetrics: ProbeEffects['renderMetrics'];
  readonly showsProbeDetails: boolean;
  readonly recordRequest: (record: RequestRecord) => void;
  /** Absent: traces are off. */
  readonly requestTracer?: RequestTracer;
  /** Absent: `close` closes idle connections at once. */
  readonly serverStop?: ServerStop;
}

/** A configuration with all 72 events and the longest URL has under 6 KB. Routes that need more set their own limit. */
const BODY_SIZE_BYTES_MAX = 64 * 1024;
/** An email of 254 bytes, each percent-encoded. */
const PATH_PARAMETER_LENGTH_MAX = 1000;
const BODY_TIMEOUT_MS = 30_000;
const HEAD_TIMEOUT_MS = 30_000;
/** Of a file. */
const REQUEST_TIMEOUT_MS = 6 * 3_600_000;

/** A request's id that a caller may choose: no spaces, and no character that breaks a log line. */
const REQUEST_ID = /^[\w.:+/=-]{1,128}$/;

/** Builds the app; `listen` and `close` are the caller's. */
export async function buildServer(
  effects: ApiEffects,
  bodyTimeoutMs = BODY_TIMEOUT_MS,
): Promise<ApiServer> {
  const app: ApiServer = fastify({
    loggerInstance: effects.logger,
    // Each request is logged once, below: Fastify's own lines show the URL, which names people.
    logController: new LogController({ disableRequestLogging: true }),
    bodyLimit: BODY_SIZE_BYTES_MAX,
    requestTimeout: REQUEST_TIMEOUT_MS,
    trustProxy: effects.trustedProxies.length === 0 ? false : [...effects.trustedProxies],
    http: { headersTimeout: HEAD_TIMEOUT_MS },
    routerOptions: { maxParamLength: PATH_PARAMETER_LENGTH_MAX },
    genReqId: (request) => {
      const given = request.headers['x-request-id'];
      return typeof given === 'string' && REQUEST_ID.test(given) ? given : effects.newId();
    },
    // While closing, calls on open connections are still answered, with `Connection: close`.
    return503OnClosing: false,
    forceCloseConnections: 'idle',
    frameworkErrors: (error, request, reply) => {
      void reply.headers(commonHeaders(request.id));
      handleError(error, request, reply);
    },
    clientErrorHandler: handleClientError(effects.newId),
  }).withTypeProvider<ZodTypeProvider>();

  app.setValidatorCompiler(validatorCompiler);
  app.setSerializerCompiler(serializerCompiler);
  app.setErrorHandler(handleError);
  app.decorateRequest('caller', null);
  app.decorateRequest('accountCaller', null);
  app.removeAllContentTypeParsers();
  app.addContentTypeParser('application/json', { parseAs: 'buffer' }, parseJsonBody(app));

  app.decorateRequest('traceparent', null);
  effects.requestTracer?.watch(app);
  effects.serverStop?.watch(app);
  if (effects.trustedProxies.length > 0) {
    // Before the first use of the caller's address.
    app.addHook('onRequest', (request, _reply, done) => {
      const { headers } = request.raw;
      const forwardedFor = headers['x-forwarded-for'];
      if (typeof forwardedFor === 'string') headers['x-forwarded-for'] = withoutPorts(forwardedFor);
      done();
    });
  }
  app.addHook('onRequest', boundBodyTime(bodyTimeoutMs, effects.newId));
  app.addHook('onRequest', async (request, reply) => {
    void reply.headers(commonHeaders(request.id));
    if (request.is404)
      return sendProblem(request, reply, { code: 'not_found', message: 'no such path' });
    const demoRefusal = refuseDemo(request.headers, effects.demoHosts);
    if (demoRefusal) return sendProblem(request, reply, demoRefusal);
    if (countAuthorizations(request.raw.rawHeaders) > 1)
      return sendProblem(request, reply, {
        code: 'invalid_request',
        message: 'Authorization is repeated; send it once',
      });
    return undefined;
  });
  app.addHook('onResponse', async (request, reply) => {
    const record: RequestRecord = {
      method: request.method,
      route: request.routeOptions.url ?? 'none',
      status: reply.statusCode,
      durationMs: reply.elapsedTime,
    };
    effects.recordRequest(record);
    request.log.debug(record, 'answered');
  });

  refuseWhatIsBeyond(app);
  keepAnswers(app, effects);
  readFromReplica(app, effects.replicaReads);

  const declareMissingMethods = watchMethods(app);
  await describeApi(app);
  registerProbes(app, effects);
  await app.register(async (scope: ApiServer) => {
    authenticateCallers(scope, effects);
    registerReportingWebhooks(scope, effects);
    registerAttemptRequest(scope, effects);
    registerLaneOperations(scope, effects);
    registerWebhookSecrets(scope, effects);
    registerWebhookReplays(scope, effects);
    registerPortalLinks(scope, effects);
    registerEventTypes(scope, effects);
    registerApplications(scope, effects);
    registerFeeds(scope, effects);
    registerPortalSession(scope, effects);
    registerCustomers(scope, effects);
    registerObjects(scope, effects);
    registerAttributeHistory(scope, effects);
    registerEventList(scope, effects);
    registerEventTrace(scope, effects);
    registerStatistics(scope, effects);
    registerWorkspaceDeliveries(scope, effects);
    registerLiveTail(scope, effects);
    registerIngestionIssues(scope, effects);
    registerImports(scope, effects);
    registerWorkspaces(scope, effects);
  });
  await app.register(async (scope: ApiServer) => {
    scope.setValidatorCompiler(accountValidatorCompiler);
    guardAccounts(scope, effects);
    registerAccounts(scope, effects);
    registerEnvironments(scope, effects);
    registerBilling(scope, effects);
    registerUsers(scope, effects);
    registerUserChanges(scope, effects);
    registerIdentityProvider(scope, effects);
    registerCredentials(scope, effects);
    registerReceipts(scope, effects);
    registerPartnerDecisions(scope, effects);
    registerAuditLogs(scope, effects);
    registerAuditLogExports(scope, effects);
    registerConsoleSessions(scope, effects);
    registerDeviceApproval(scope, effects);
    registerFleet(scope, effects);
  });
  await app.register(async (scope: ApiServer) => {
    const readSession = createSessionDoor(effects);
    keepNoAnswers(scope);
    registerSignIn(scope, effects, readSession);
    registerSecondFactor(scope, effects, readSession);
    registerProviderSignIn(scope, effects, readSession);
    registerSignOut(scope, effects, readSession);
    registerPortalOpening(scope, effects);
  });
  await app.register(async (scope: ApiServer) => {
    keepNoAnswers(scope);
    registerDeviceLogin(scope, effects);
  });
  await app.register(async (scope: ApiServer) => {
    scope.setValidatorCompiler(accountValidatorCompiler);
    registerSignup(scope, effects);
    registerStartupProgram(scope, effects);
    registerTokenExchange(scope, effects);
  });
  await app.register(async (scope: ApiServer) => {
    registerProviderEvents(scope, effects);
  });
  await app.register(async (scope: ApiServer) => registerExportDownload(scope, effects));
  registerConsoleFiles(app, effects);
  serveReference(app);
  declareMissingMethods();
  return app;
}

/**
 * Opens the socket.
 *
 * @returns the port, which the system chose if `port` is 0.
 * @throws AppError PORT_TAKEN
 */
export async function listen(app: ApiServer, host: string, port: number): Promise<number> {
  try {
    await app.listen({ host, port });
  } catch (error) {
    const isOfSystem = error instanceof Error && 'syscall' in error;
    throw isOfSystem ? portTaken({ owner: 'API', host, port }, error) : error;
  }
  const address = app.server.address();
  return typeof address === 'object' && address !== null ? address.port : port;
}

/** Node reads the first of several; a proxy may have checked another. `headers` are names and values in turn. */
const countAuthorizations = (headers: readonly string[]): number =>
  headers.filter((text, place) => place % 2 === 0 && text.toLowerCase() === 'authorization').length;

function commonHeaders(requestId: string): Record<string, string> {
  return {
    'x-request-id': requestId,
    'cache-control': 'no-store',
    'x-content-type-options': 'nosniff',
  };
}
