/** All that the API takes from outside; `main.ts` opens it, and each route family takes the part that it needs. */
import type { PaymentProvider } from '@sluice/billing-vendor/port/payment-provider';
import type { ImportStorage } from '@sluice/database/imports/import-chunks';
import type { AuditLogExportKey } from '@sluice/database/audit/audit-log-exports';
import type { PurchaseKey } from '@sluice/database/billing/purchase-workflows';
import type { Database } from '@sluice/database/connection/connection';
import type { Catalogue } from '@sluice/domain/billing/catalogue';
import type { LaneKey } from '@sluice/domain/wake-ups/lane-key';
import type { EncryptedText } from '@sluice/platform/secrets/encrypted-text';
import type { FastifyBaseLogger } from 'fastify';
import type { ReadTextRecords } from './identity/domain-records.ts';
import type { ProviderClient } from './identity/provider-client.ts';
import type { ReplicaReads } from './http/replica-reads.ts';
import type { ProbeEffects } from './serving/probes.ts';
import type { FleetBroker } from './fleet/read-fleet.ts';
import type { SignupAdmission } from './accounts/signup-admission.ts';
import type { RefusedCredentials } from './auth/refused-credentials.ts';
import type { TailHub } from './events/tail-hub.ts';
import type { TailPlaces } from './events/tail-places.ts';
import type { ServerStop } from './serving/server-stop.ts';
import type { RequestTracer } from './serving/trace-requests.ts';

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
  /** Of connections that an address holds. 0: no bound. */
  readonly addressConnectionCountMax: number;

  readonly checkReadiness: ProbeEffects['checkReadiness'];
  readonly renderMetrics: ProbeEffects['renderMetrics'];
  readonly showsProbeDetails: boolean;
  readonly recordRequest: (record: RequestRecord) => void;
  /** Absent: traces are off. */
  readonly requestTracer?: RequestTracer;
  /** Absent: `close` closes idle connections at once. */
  readonly serverStop?: ServerStop;
}
