/**
 * Where the requests of a lane go and how they are signed, as Postgres last said: the owner may change both during a
 * drain. Used by `lane-drain.ts`.
 */
import type { LoggedDelivery } from '@sluice/database/delivery/logged-deliveries';
import type { LaneKey } from '@sluice/database/delivery/lanes';
import type { LaneTarget } from '@sluice/database/delivery/lane-target';
import type { HttpPost } from '../http/http-outcome.ts';
import type { LaneDrainDeps } from './lane-drain-deps.ts';
import { DeliverySigner, isSignedOtherwise } from './sign-delivery.ts';

export class LaneEndpoint {
  readonly #open: (encrypted: string) => string;
  #target: LaneTarget;
  #signer: DeliverySigner;

  constructor(
    { openSecret }: Pick<LaneDrainDeps, 'openSecret'>,
    { environmentId }: LaneKey,
    target: LaneTarget,
  ) {
    this.#open = (encrypted) => openSecret(environmentId, encrypted);
    this.#target = target;
    this.#signer = new DeliverySigner(target, this.#open);
  }

  /** Grows when it is somewhere else than before, and when its webhook is enabled. */
  get version(): number {
    return this.#target.endpointVersion;
  }

  /** One attempt, signed for the time at which it is made. */
  request({ eventId, body }: LoggedDelivery, atMs: number): HttpPost {
    return {
      endpoint: this.#target.endpoint,
      headers: this.#signer.headers(eventId, body, atMs),
      body,
    };
  }

  /** @returns true where what failed before says nothing about it any more. */
  adopt(target: LaneTarget): boolean {
    const isAnother = target.endpointVersion !== this.version;
    if (isSignedOtherwise(target, this.#target))
      this.#signer = new DeliverySigner(target, this.#open);
    this.#target = target;
    return isAnother;
  }
}
