/**
 * The name of each operation, and the meaning of its successful answer.
 *
 * Generated clients use the names. A name never changes: programs are compiled against it.
 *
 * Used by `published-description.ts`. A test holds the table to the routes.
 */
import { ACCOUNT_OPERATIONS, type OperationNames } from './account-operation-names.ts';

const WORKSPACE_OPERATIONS: OperationNames = {
  'POST /v1/reporting_webhooks': ['createReportingWebhook', 'The webhook that was made.'],
  'GET /v1/reporting_webhooks': ['listReportingWebhooks', 'All webhooks of the workspace.'],
  'GET /v1/reporting_webhooks/{webhook_id}': ['getReportingWebhook', 'The webhook.'],
  'PUT /v1/reporting_webhooks/{webhook_id}': [
    'updateReportingWebhook',
    'The webhook after the change.',
  ],
  'DELETE /v1/reporting_webhooks/{webhook_id}': ['deleteReportingWebhook', 'Deleted.'],
  'GET /v1/reporting_webhooks/{webhook_id}/deliveries': [
    'listDeliveries',
    'A page of deliveries with their attempts, newest first.',
  ],
  'GET /v1/reporting_webhooks/{webhook_id}/deliveries/{sequence}/attempts/{attempt}/request': [
    'getAttemptRequest',
    'The request.',
  ],
  'GET /v1/event_types': ['listEventTypes', 'A page of event types.'],
  'GET /v1/event_types/{name}': ['getEventType', 'The event type.'],
  'PUT /v1/event_types/{name}': ['putEventType', 'The event type after the change.'],
  'DELETE /v1/event_types/{name}': ['archiveEventType', 'Archived, or deleted.'],
  'POST /v1/event_types/{name}/check': ['checkPayload', 'Whether the payload fits.'],
  'GET /v1/feeds': ['listFeeds', 'All feeds of the workspace.'],
  'PUT /v1/feeds/{name}': ['putFeed', 'The feed after the change.'],
  'DELETE /v1/feeds/{name}': ['deleteFeed', 'Deleted.'],
  'GET /v1/feeds/{name}': ['readFeed', 'A page of events, or a stream of them.'],
  'POST /v1/applications': ['createApplication', 'The application that was made.'],
  'GET /v1/applications': ['listApplications', 'A page of applications.'],
  'GET /v1/applications/{application_id}': ['getApplication', 'The application.'],
  'PUT /v1/applications/{application_id}': [
    'renameApplication',
    'The application after the change.',
  ],
  'DELETE /v1/applications/{application_id}': ['deleteApplication', 'Deleted.'],
  'POST /v1/applications/{application_id}/endpoints': [
    'createEndpoint',
    'The endpoint that was made. Its secret is shown this once.',
  ],
  'GET /v1/applications/{application_id}/endpoints': ['listEndpoints', 'A page of endpoints.'],
  'POST /v1/applications/{application_id}/replays': [
    'createApplicationReplays',
    'The replay of each endpoint; of a dry run, the number of deliveries that it would send.',
  ],
  'GET /v1/deliveries': [
    'listWorkspaceDeliveries',
    'A page of deliveries with their attempts, newest first.',
  ],
  'GET /v1/reporting_webhooks/{webhook_id}/deliveries/{sequence}': [
    'getDelivery',
    'The delivery with its attempts.',
  ],
  'GET /v1/reporting_webhooks/{webhook_id}/state': [
    'getReportingWebhookState',
    'The state of the queue, and the cause of its wait.',
  ],
  'POST /v1/reporting_webhooks/{webhook_id}/probe': [
    'probeReportingWebhook',
    'Whether the head is tried at once.',
  ],
  'POST /v1/reporting_webhooks/{webhook_id}/skip_head': [
    'skipDelivery',
    'The number of the delivery that was abandoned.',
  ],
  'POST /v1/reporting_webhooks/{webhook_id}/deliveries/{sequence}/resend': [
    'resendDelivery',
    'The copy that was logged, to be sent.',
  ],
  'POST /v1/reporting_webhooks/{webhook_id}/test': [
    'testReportingWebhook',
    'The test event that was logged, to be sent.',
  ],
  'GET /v1/reporting_webhooks/{webhook_id}/secrets': [
    'listWebhookSecrets',
    'The secrets, without their values.',
  ],
  'POST /v1/reporting_webhooks/{webhook_id}/secrets': [
    'rotateWebhookSecret',
    'The new secret. It is shown this once.',
  ],
  'POST /v1/reporting_webhooks/{webhook_id}/secrets/promote': [
    'promoteWebhookSecret',
    'The secrets after the change, without their values.',
  ],
  'DELETE /v1/reporting_webhooks/{webhook_id}/secrets/next': [
    'deleteNextWebhookSecret',
    'The secrets after the change, without their values.',
  ],
  'GET /v1/portal_origins': ['listPortalOrigins', 'The origins.'],
  'POST /v1/portal_links': ['createPortalLink', 'The link. Its `url` is shown this once.'],
  'GET /v1/portal_links': ['listPortalLinks', 'A page of links, newest first, without codes.'],
  'DELETE /v1/portal_links/{portal_link_id}': ['deletePortalLink', 'Ended.'],
  'POST /v1/reporting_webhooks/{webhook_id}/replays': [
    'createReplay',
    'The replay that was begun; of a dry run, how many deliveries it would send.',
  ],
  'GET /v1/reporting_webhooks/{webhook_id}/replays': [
    'listReplays',
    'The replays of the webhook, newest first.',
  ],
  'GET /v1/reporting_webhooks/{webhook_id}/replays/{replay_id}': [
    'getReplay',
    'The replay and how far it is.',
  ],
  'GET /v1/reporting_webhooks/{webhook_id}/replays/{replay_id}/attempts': [
    'listReplayAttempts',
    'A page of attempts.',
  ],
  'POST /v1/reporting_webhooks/{webhook_id}/replays/{replay_id}/cancel': [
    'cancelReplay',
    'The replay as it ended.',
  ],
  'GET /v1/customers': ['findCustomers', 'The people who have the email.'],
  'GET /v1/customers/{identifier}/attributes': ['getCustomerAttributes', 'The person.'],
  'GET /v1/customers/{identifier}/attributes/{name}/history': [
    'listAttributeHistory',
    'A page of changes, newest first.',
  ],
  'GET /v1/customers/{identifier}/activities': [
    'listCustomerActivities',
    'A page of activities, newest first.',
  ],
  'GET /v1/customers/{identifier}/relationships': [
    'listCustomerRelationships',
    'A page of relationships.',
  ],
  'GET /v1/object_types': ['listObjectTypes', 'The types of object.'],
  'POST /v1/objects': ['findObjects', 'A page of identifiers of objects.'],
  'GET /v1/objects/{object_type_id}/{object_id}/attributes': ['getObjectAttributes', 'The object.'],
  'GET /v1/objects/{object_type_id}/{object_id}/relationships': [
    'listObjectRelationships',
    'A page of relationships.',
  ],
  'GET /v1/events': ['listEvents', 'A page of events, newest first.'],
  'GET /v1/events/{event_id}': ['getEvent', 'The event.'],
  'GET /v1/statistics': ['getStatistics', 'A series of values, or one of each name or webhook.'],
  'GET /v1/events/{event_id}/trace': ['getEventTrace', 'The steps of the event until this call.'],
  'GET /v1/stream': [
    'streamEvents',
    'Server-sent events until the reader ends the call, for an hour by default.',
  ],
  'GET /v1/ingestion_issues': ['listIngestionIssues', 'A page of issues, those seen last first.'],
  'GET /v1/imports': ['listImports', 'A page of imports, newest first.'],
  'POST /v1/imports': ['createImport', 'The import that was begun.'],
  'GET /v1/imports/{import_id}': ['getImport', 'The import and how far it is.'],
  'POST /v1/imports/{import_id}/cancel': ['cancelImport', 'The import as it ended.'],
  'GET /v1/imports/{import_id}/errors': [
    'downloadImportErrors',
    'CSV: each row that was not imported, and why.',
  ],
  'GET /v1/imports/{import_id}/warnings': [
    'downloadImportWarnings',
    'CSV: each row that was imported with a correction.',
  ],
  'GET /v1/workspaces': ['getWorkspace', 'The workspace of the key.'],
  'GET /v1/info/ip_addresses': ['listIpAddresses', 'The addresses.'],
};

export const OPERATIONS: OperationNames = { ...WORKSPACE_OPERATIONS, ...ACCOUNT_OPERATIONS };
