/** An application as `GET /v1/applications/{id}` shows it: a customer of the workspace. */
export interface Application {
  /** The workspace's own word for it. */
  readonly id: string;
  readonly name: string;
  /** ISO 8601. */
  readonly created_at: string;
}
