/**
 * All routes of the API, by their common guard.
 *
 * A route family takes the effects that it needs. Before: the hooks of `server.ts`.
 */
import type { ApiServer } from './http/api-server.ts';
import { guardAccounts } from './auth/account-guard.ts';
import { registerAccounts } from './accounts/accounts.ts';
import { registerCredentials } from './accounts/api-credentials.ts';
import { registerAuditLogExports, registerExportDownload } from './audit/audit-log-exports.ts';
import { registerAuditLogs } from './audit/audit-logs.ts';
import { authenticateCallers } from './auth/authenticate.ts';
import { registerBilling } from './billing-routes.ts';
import { registerPortalOpening, registerPortalSession } from './console/portal-session.ts';
import { registerConsoleSessions } from './console/console-sessions.ts';
import { registerDeviceApproval } from './console/device-approval.ts';
import { registerDeviceLogin } from './console/device-login.ts';
import { registerSecondFactor } from './console/second-factor.ts';
import { registerSignIn } from './console/sign-in.ts';
import { createSessionDoor } from './auth/session-door.ts';
import { registerCustomers } from './people/customers.ts';
import { registerEnvironments } from './accounts/environments.ts';
import { registerIdentityProvider } from './identity/identity-provider.ts';
import { registerProviderSignIn } from './identity/provider-sign-in.ts';
import { registerSignOut } from './identity/sign-out.ts';
import { registerImports } from './imports/imports.ts';
import { registerEventTrace } from './events/event-trace.ts';
import { keepNoAnswers } from './http/idempotency.ts';
import { registerIngestionIssues } from './events/ingestion-issues.ts';
import { registerLaneOperations } from './webhooks/lane-operations.ts';
import { registerObjects } from './people/objects.ts';
import { registerLiveTail } from './events/live-tail.ts';
import { registerApplications } from './publishing/applications.ts';
import { registerFeeds } from './publishing/feeds.ts';
import { registerEventTypes } from './publishing/event-types.ts';
import { registerPortalLinks } from './portal/portal-links.ts';
import { registerFleet } from './fleet/fleet.ts';
import { registerReceipts } from './billing/receipts.ts';
import { registerAttemptRequest } from './webhooks/attempt-request.ts';
import { registerReportingWebhooks } from './webhooks/reporting-webhooks.ts';
import { accountValidatorCompiler } from './http/request-validation.ts';
import { registerSignup } from './accounts/signup.ts';
import { registerPartnerDecisions, registerStartupProgram } from './accounts/startup-program.ts';
import { registerTokenExchange } from './accounts/token-exchange.ts';
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
import type { ApiEffects } from './api-effects.ts';

export async function registerRoutes(app: ApiServer, effects: ApiEffects): Promise<void> {
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
}
