/** A delivery and its attempts, as the API lists them. Times are Unix seconds. */

export interface Attempt {
  readonly attempt: number;
  readonly started_at: number;
  readonly duration_ms: number;
  readonly outcome: string;
  readonly status: number | null;
  readonly failure: string | null;
  readonly failure_message: string | null;
  readonly response_head: string | null;
  readonly response_body: string | null;
}

export interface Delivery {
  readonly sequence: number;
  readonly event_id: string;
  readonly event_type: string;
  readonly state: string;
  readonly created_at: number;
  readonly origin: 'event' | 'resend' | 'test';
  readonly resend_of: number | null;
  readonly attempts: readonly Attempt[];
}
