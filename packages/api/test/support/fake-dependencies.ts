/** Dependencies without a database, for what the HTTP edge does by itself: one key, an empty workspace. */
import { createHash } from 'node:crypto';
import { readCatalogue } from '@sluice/billing-vendor/catalogue/read-catalogue';
import { createSealedText } from '@sluice/platform/secrets/sealed-text';
import { fastify } from 'fastify';
import { afterEach } from 'vitest';
import type { ApiServer } from '../../src/http/api-server.ts';
import { buildServer, type ApiDependencies, type RequestRecord } from '../../src/server.ts';

export const KEY = 'key_of_workspace_1';
const KEY_HASH = createHash('sha256').update(KEY).digest();

/** What the app logs and records is kept; everything may be replaced. */
export function fakeDependencies(changes: Partial<ApiDependencies> = {}) {
  const records: RequestRecord[] = [];
  let idCount = 0;
  const dependencies: ApiDependencies = {
    logger: fastify().log,
    now: () => 1_700_000_000_000,
    newId: () => `id-${++idCount}`,
    recordRequest: (record) => void records.push(record),
    checkReadiness: async () => ({ isReady: true, checks: { database: 'answers' } }),
    renderMetrics: async () => ({ contentType: 'text/plain', body: 'sluice_up 1\n' }),
    outgoingIpAddresses: ['192.0.2.1'],
    wakeLane: async () => {},
    findAppKey: async (hash) =>
      hash.equals(KEY_HASH) ? { environmentId: 1, credentialId: 1, name: 'test' } : undefined,
    secret: 'secret of the api under test, long enough',
    findAccountToken: async () => undefined,
    findAccountTokenById: async () => undefined,
    recordCredentialUse: async () => {},
    listAuditLogs: async () => [],
    findAuditLog: async () => undefined,
    orderAuditLogExport: async () => undefined,
    findAuditLogExport: async () => undefined,
    findExportPart: async () => undefined,
    wakeExport: async () => {},
    findAccount: async () => undefined,
    findAccountByEnvironment: async () => undefined,
    billing: {
      database: undefined as never,
      vendor: undefined as never,
      catalogue: readCatalogue(undefined),
      secret: 'secret of the api under test, long enough',
      vendorEventSecret: 'whsec_test',
      wakeRun: async () => {},
      wakeVendorEvents: async () => {},
      newId: () => 'id',
      now: () => 1_700_000_000_000,
      cardPaymentMs: 60_000,
      vendorTimeoutMs: 1_000,
      purchaseWaitMs: 1,
    },
    updateAccount: async () => undefined,
    updateAddress: async () => undefined,
    updateEnvironment: async () => undefined,
    requireTwoFactor: async () => undefined,
    activateProduct: async () => undefined,
    listUsers: async () => ({ users: [], total: 0 }),
    listCredentials: async () => [],
    findCredential: async () => undefined,
    createCredential: async () => undefined,
    rotateCredential: async () => undefined,
    revokeCredential: async () => undefined,
    findReceipt: async () => undefined,
    ratePerMinute: 0,
    keyRatePerSecond: 0,
    takeCalls: async (_subject, count) => count,
    trustedProxies: [],
    claimIdempotencyKey: async () => ({ outcome: 'claimed', isDone: false }),
    keepIdempotentAnswer: async (_key, answer) => answer,
    releaseIdempotencyKey: async () => {},
    startSignup: async () => 'started',
    countSignupAttempt: async () => undefined,
    createAccount: async () => 'used',
    listApprovedPartners: async () => [],
    insertPartner: async () => {
      throw new Error('nobody applies');
    },
    decidePartner: async () => undefined,
    submitStartupApplication: async () => true,
    findWorkspaceTotals: async () => undefined,
    findPersonProfile: async () => undefined,
    listDevices: async () => [],
    listActivities: async () => [],
    listRelationships: async () => [],
    listObjectTypes: async () => [],
    findObjects: async () => ({ objects: [], nextAfter: undefined }),
    findObjectProfile: async () => undefined,
    listObjectRelationships: async () => [],
    listIngestionIssues: async () => [],
    insertImport: () => Promise.reject(new Error('no database')),
    deleteImport: async () => {},
    findImport: async () => undefined,
    listImports: async () => [],
    finishUpload: async () => undefined,
    cancelImport: async () => undefined,
    appendImportChunk: async () => 'ended',
    listImportProblems: async () => [],
    importSizeBytesMax: 1_000,
    unfinishedImportSizeBytesMax: 1_000,
    makeWebhook: async () => undefined,
    listWebhooks: async () => [],
    findWebhook: async () => undefined,
    changeWebhook: async () => undefined,
    removeWebhook: async () => false,
    listDeliveries: async () => [],
    listDeliveriesOfState: async () => ({ deliveries: [], nextBefore: undefined }),
    listAttempts: async () => [],
    findEventArrival: async () => undefined,
    findEventAt: async () => undefined,
    listDeliveriesOfEvent: async () => [],
    listAttemptsOf: async () => [],
    giveUpAfterMs: 604_800_000,
    openTail: async () => ({ close: () => {} }),
    tailReaderCount: () => 0,
    // Ends by itself: whoever tries every operation waits for each answer's end.
    tailDurationMsMax: 1,
    findLaneState: async () => undefined,
    probeNow: async () => 'not_found',
    skipHead: async () => 'not_found',
    appendResend: async () => ({ outcome: 'not_found' }),
    appendTest: async () => ({ outcome: 'not_found' }),
    sealedText: createSealedText([{ id: 'test', key: Buffer.alloc(32) }]),
    newSecret: () => 'secret',
    planReplay: async () => ({ outcome: 'not_found' }),
    startReplay: async () => ({ outcome: 'not_found' }),
    listReplays: async () => [],
    findReplay: async () => undefined,
    cancelReplay: async () => undefined,
    listAttemptsOfReplay: async () => [],
    findSigningKeys: async () => undefined,
    rotateWebhookSecret: async () => ({ outcome: 'not_found' }),
    promoteWebhookSecret: async () => ({ outcome: 'not_found' }),
    cancelWebhookSecret: async () => ({ outcome: 'not_found' }),
    ...changes,
  };
  return { dependencies, records };
}

const opened: ApiServer[] = [];
afterEach(async () => {
  for (const app of opened.splice(0)) await app.close();
});

/** The app over such dependencies; closed when the test ends. */
export async function openServer(changes: Partial<ApiDependencies> = {}) {
  const { dependencies, records } = fakeDependencies(changes);
  const app = await buildServer(dependencies);
  opened.push(app);
  return { app, records };
}

export const authorization = `Bearer ${KEY}`;
