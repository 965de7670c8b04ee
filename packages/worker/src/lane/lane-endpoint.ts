/**
 * Endpoint, signature and credentials of a delivery queue's requests. The owner may change all of it during a drain, so
 * the values are the latest from Postgres. Used by `lane-drain.ts`.
 */
import type { LoggedDelivery } from '@sluice/database/delivery/logged-deliveries';
import type { LaneTarget } from '@sluice/database/delivery/lane-target';
import type { LaneKey } from '@sluice/domain/wake-ups/lane-key';
import { endpointAccess, type DeliveryPost, type EndpointAccess } from './endpoint-access.ts';
import type { LaneDrainDeps } from './lane-drain-deps.ts';
import { DeliverySigner, isSignedOtherwise } from './sign-delivery.ts';

export class LaneEndpoint {
  readonly #open: (encrypted: string) => string;
  #target: LaneTarget;
  #signer: DeliverySigner;
  readonly #webhook: LaneKey;
  #access: EndpointAccess;

  constructor(
    { openSecret }: Pick<LaneDrainDeps, 'openSecret'>,
    { environmentId, webhookId }: LaneKey,
    target: LaneTarget,
  ) {
    this.#open = (encrypted) => openSecret(environmentId, encrypted);
    this.#webhook = { environmentId, webhookId };
    this.#target = target;
    this.#signer = new DeliverySigner(target, this.#open);
    this.#access = this.#accessOf(target);
  }

  /** Grows when it is somewhere else than before, and when its webhook is enabled. */
  get version(): number {
    return this.#target.endpointVersion;
  }

  /** Texts of its requests that no kept answer may show (`maskSecrets`). */
  get secrets(): readonly string[] {
    return this.#signer.secrets;
  }

  /** One attempt, signed for the time at which it is made. */
  request({ eventId, body }: LoggedDelivery, atMs: number): DeliveryPost {
    return {
      endpoint: this.#target.endpoint,
      headers: this.#signer.headers(eventId, body, atMs),
      body,
      ...this.#access,
    };
  }

  /** @returns true if earlier failures are no sign about it any more. */
  adopt(target: LaneTarget): boolean {
    const isAnother = target.endpointVersion !== this.version;
    if (isSignedOtherwise(target, this.#target))
      this.#signer = new DeliverySigner(target, this.#open);
    if (isAnother || target.endpointCredentials !== this.#target.endpointCredentials)
      this.#access = this.#accessOf(target);
    this.#target = target;
    return isAnother;
  }

  #accessOf({ endpointCredentials, endpointVersion }: LaneTarget): EndpointAccess {
    const opened = endpointCredentials === null ? null : this.#open(endpointCredentials);
    return endpointAccess(opened, this.#webhook, endpointVersion);
  }
}
