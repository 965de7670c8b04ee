/**
 * The HTTP edge of the API: one Fastify app from its dependencies, without opening a socket.
 *
 * What every request meets, in order: a request id, the headers every answer carries, 404 or 405
 * before the body is read, the bearer key (under `/v1`), the body under its limit, the zod schemas,
 * the handler, the response checked against its schema. One file a route family declares routes.
 * Two kinds of keys: one of the app API opens a workspace (`authenticate.ts`), a service account's
 * token opens an account (`account-guard.ts`).
 */
import { portTaken } from '@sluice/platform/process/port-taken';
import fastify, { LogController, type FastifyBaseLogger } from 'fastify';
import { serializerCompiler, type ZodTypeProvider } from 'fastify-type-provider-zod';
import {
  type AccountGuardDependencies,
  guardAccounts,
  refuseWhatIsBeyond,
} from './auth/account-guard.ts';
import { type AccountDependencies, registerAccounts } from './accounts/accounts.ts';
import { type CredentialDependencies, registerCredentials } from './accounts/api-credentials.ts';
import { watchMethods } from './serving/allowed-methods.ts';
import {
  type AuditLogExportDependencies,
  registerAuditLogExports,
  registerExportDownload,
} from './audit/audit-log-exports.ts';
import { type AuditLogDependencies, registerAuditLogs } from './audit/audit-logs.ts';
import { authenticateCallers, type AuthenticateDependencies } from './auth/authenticate.ts';
import type { BillingDependencies } from './billing/billing.ts';
import { registerBilling } from './billing-routes.ts';
import { boundBodyTime } from './serving/body-deadline.ts';
import { parseJsonBody } from './http/body.ts';
import { type CustomerDependencies, registerCustomers } from './people/customers.ts';
import { type EnvironmentDependencies, registerEnvironments } from './accounts/environments.ts';
import { handleClientError, handleError, sendProblem } from './http/error-handling.ts';
import { type ImportDependencies, registerImports } from './imports/imports.ts';
import { type EventTraceDependencies, registerEventTrace } from './events/event-trace.ts';
import type { ApiServer } from './http/api-server.ts';
import { withoutPorts } from './serving/forwarded-for.ts';
import { type IdempotencyDependencies, keepAnswers } from './http/idempotency.ts';
import {
  type IngestionIssueDependencies,
  registerIngestionIssues,
} from './events/ingestion-issues.ts';
import {
  type LaneOperationDependencies,
  registerLaneOperations,
} from './webhooks/lane-operations.ts';
import { type ObjectDependencies, registerObjects } from './people/objects.ts';
import { type LiveTailDependencies, registerLiveTail } from './events/live-tail.ts';
import { describeApi, serveReference } from './openapi/openapi.ts';
import { type ProbeDependencies, registerProbes } from './serving/probes.ts';
import { type ReceiptDependencies, registerReceipts } from './billing/receipts.ts';
import {
  registerReportingWebhooks,
  type ReportingWebhookDependencies,
} from './webhooks/reporting-webhooks.ts';
import { accountValidatorCompiler, validatorCompiler } from './http/request-validation.ts';
import { registerSignup, type SignupDependencies } from './accounts/signup.ts';
import {
  registerPartnerDecisions,
  registerStartupProgram,
  type StartupProgramDependencies,
} from './accounts/startup-program.ts';
import { registerTokenExchange } from './accounts/token-exchange.ts';
import type { ServerStop } from './serving/server-stop.ts';
import type { RequestTracer } from './serving/trace-requests.ts';
import { registerVendorEvents } from './billing/vendor-event-endpoint.ts';
import { registerUsers, type UserDependencies } from './accounts/users.ts';
import {
  registerWebhookReplays,
  type WebhookReplayDependencies,
} from './webhooks/webhook-replays.ts';
import {
  registerWebhookSecrets,
  type WebhookSecretDependencies,
} from './webhooks/webhook-secrets.ts';
import { registerWorkspaces, type WorkspaceDependencies } from './events/workspaces.ts';

/** A finished request, for metrics and the log. */
export interface RequestRecord {
  readonly method: string;
  /** The route's pattern, never the URL: that names people. */
  readonly route: string;
  readonly status: number;
  readonly durationMs: number;
}

export interface ApiDependencies
  extends
    AuthenticateDependencies,
    ReportingWebhookDependencies,
    LaneOperationDependencies,
    WebhookSecretDependencies,
    WebhookReplayDependencies,
    CustomerDependencies,
    ObjectDependencies,
    EventTraceDependencies,
    LiveTailDependencies,
    IngestionIssueDependencies,
    ImportDependencies,
    WorkspaceDependencies,
    AccountGuardDependencies,
    AccountDependencies,
    EnvironmentDependencies,
    UserDependencies,
    CredentialDependencies,
    ReceiptDependencies,
    SignupDependencies,
    IdempotencyDependencies,
    StartupProgramDependencies,
    AuditLogDependencies,
    AuditLogExportDependencies,
    ProbeDependencies {
  readonly billing: BillingDependencies;
  readonly logger: FastifyBaseLogger;
  /** Addresses and CIDR blocks whose `X-Forwarded-For` says who calls; limits count by it, the audit log keeps it. */
  readonly trustedProxies: readonly string[];
  readonly newId: () => string;
  readonly recordRequest: (record: RequestRecord) => void;
  /** Absent: traces are off. */
  readonly requestTracer?: RequestTracer;
  /** Absent: `close` closes at once what is idle. */
  readonly serverStop?: ServerStop;
}

/** A configuration with all 72 events and the longest URL has under 6 KB. Routes that need more say so. */
const BODY_SIZE_BYTES_MAX = 64 * 1024;
/** An email of 254 bytes, each percent-encoded. */
const PATH_PARAMETER_LENGTH_MAX = 1000;
const BODY_TIMEOUT_MS = 30_000;
const HEAD_TIMEOUT_MS = 30_000;
/** Of a file. */
const REQUEST_TIMEOUT_MS = 6 * 3_600_000;

/** What a caller may choose as a request's id: no spaces, nothing that breaks a log line. */
const REQUEST_ID = /^[\w.:+/=-]{1,128}$/;

/** Builds the app; `listen` and `close` are the caller's. */
export async function buildServer(
  dependencies: ApiDependencies,
  bodyTimeoutMs = BODY_TIMEOUT_MS,
): Promise<ApiServer> {
  const app: ApiServer = fastify({
    loggerInstance: dependencies.logger,
    // Each request is logged once, below: Fastify's own lines show the URL, which names people.
    logController: new LogController({ disableRequestLogging: true }),
    bodyLimit: BODY_SIZE_BYTES_MAX,
    requestTimeout: REQUEST_TIMEOUT_MS,
    trustProxy: dependencies.trustedProxies.length === 0 ? false : [...dependencies.trustedProxies],
    http: { headersTimeout: HEAD_TIMEOUT_MS },
    routerOptions: { maxParamLength: PATH_PARAMETER_LENGTH_MAX },
    genReqId: (request) => {
      const given = request.headers['x-request-id'];
      return typeof given === 'string' && REQUEST_ID.test(given) ? given : dependencies.newId();
    },
    // While closing, what arrives on open connections is still answered, with `Connection: close`.
    return503OnClosing: false,
    forceCloseConnections: 'idle',
    frameworkErrors: (error, request, reply) => {
      void reply.headers(commonHeaders(request.id));
      handleError(error, request, reply);
    },
    clientErrorHandler: handleClientError(dependencies.newId),
  }).withTypeProvider<ZodTypeProvider>();

  app.setValidatorCompiler(validatorCompiler);
  app.setSerializerCompiler(serializerCompiler);
  app.setErrorHandler(handleError);
  app.decorateRequest('caller', null);
  app.decorateRequest('accountCaller', null);
  app.removeAllContentTypeParsers();
  app.addContentTypeParser('application/json', { parseAs: 'buffer' }, parseJsonBody(app));

  app.decorateRequest('traceparent', null);
  dependencies.requestTracer?.watch(app);
  dependencies.serverStop?.watch(app);
  if (dependencies.trustedProxies.length > 0) {
    // Before the first use of the caller's address.
    app.addHook('onRequest', (request, _reply, done) => {
      const { headers } = request.raw;
      const forwardedFor = headers['x-forwarded-for'];
      if (typeof forwardedFor === 'string') headers['x-forwarded-for'] = withoutPorts(forwardedFor);
      done();
    });
  }
  app.addHook('onRequest', boundBodyTime(bodyTimeoutMs, dependencies.newId));
  app.addHook('onRequest', async (request, reply) => {
    void reply.headers(commonHeaders(request.id));
    if (request.is404)
      return sendProblem(request, reply, { code: 'not_found', message: 'no such path' });
    return undefined;
  });
  app.addHook('onResponse', async (request, reply) => {
    const record: RequestRecord = {
      method: request.method,
      route: request.routeOptions.url ?? 'none',
      status: reply.statusCode,
      durationMs: reply.elapsedTime,
    };
    dependencies.recordRequest(record);
    request.log.debug(record, 'answered');
  });

  refuseWhatIsBeyond(app);
  keepAnswers(app, dependencies);

  const declareMissingMethods = watchMethods(app);
  await describeApi(app);
  registerProbes(app, dependencies);
  await app.register(async (scope: ApiServer) => {
    authenticateCallers(scope, dependencies);
    registerReportingWebhooks(scope, dependencies);
    registerLaneOperations(scope, dependencies);
    registerWebhookSecrets(scope, dependencies);
    registerWebhookReplays(scope, dependencies);
    registerCustomers(scope, dependencies);
    registerObjects(scope, dependencies);
    registerEventTrace(scope, dependencies);
    registerLiveTail(scope, dependencies);
    registerIngestionIssues(scope, dependencies);
    registerImports(scope, dependencies);
    registerWorkspaces(scope, dependencies);
  });
  await app.register(async (scope: ApiServer) => {
    scope.setValidatorCompiler(accountValidatorCompiler);
    guardAccounts(scope, dependencies);
    registerAccounts(scope, dependencies);
    registerEnvironments(scope, dependencies);
    registerBilling(scope, dependencies.billing);
    registerUsers(scope, dependencies);
    registerCredentials(scope, dependencies);
    registerReceipts(scope, dependencies);
    registerPartnerDecisions(scope, dependencies);
    registerAuditLogs(scope, dependencies);
    registerAuditLogExports(scope, dependencies);
  });
  await app.register(async (scope: ApiServer) => {
    scope.setValidatorCompiler(accountValidatorCompiler);
    registerSignup(scope, dependencies);
    registerStartupProgram(scope, dependencies);
    registerTokenExchange(scope, dependencies);
  });
  await app.register(async (scope: ApiServer) => {
    registerVendorEvents(scope, dependencies.billing);
  });
  await app.register(async (scope: ApiServer) => registerExportDownload(scope, dependencies));
  serveReference(app);
  declareMissingMethods();
  return app;
}

/**
 * Opens the socket.
 *
 * @returns the port, which the system chose where `port` is 0.
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

function commonHeaders(requestId: string): Record<string, string> {
  return {
    'x-request-id': requestId,
    'cache-control': 'no-store',
    'x-content-type-options': 'nosniff',
  };
}
