/** The name of a delivery queue, in every package. */

/** One webhook's ordered deliveries. */
export interface LaneKey {
  readonly environmentId: number;
  readonly webhookId: number;
}
