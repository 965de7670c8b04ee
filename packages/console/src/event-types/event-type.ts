/** An event type as `GET /v1/event_types/{name}` shows it. */
import type { Described } from '../client/operations.ts';

/** Its schema is null if any payload is taken. */
export type EventType = Described<'EventType'>;

/** As a user types it: any JSON, and the API refuses a value that is no object. */
export type JsonSchema = Readonly<Record<string, unknown>> | null;
