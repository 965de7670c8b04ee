/** An event type as `GET /v1/event_types/{name}` shows it. */
export interface EventType {
  readonly name: string;
  /** From 1, one more with each other schema. */
  readonly version: number;
  /** Empty: no description. */
  readonly description: string;
  /** Null: any payload is taken. */
  readonly schema: unknown;
  /** Of this version: ISO 8601. */
  readonly created_at: string;
  /** Publishing refuses it. */
  readonly archived: boolean;
}
