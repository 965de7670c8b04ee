/** The fields of both forms of a webhook: its name and its endpoint. */
import { FOCUSED } from '../parts/focused.ts';
import type { Webhook } from './configuration.ts';

export function AddressFields({
  webhook,
  onEndpoint,
}: {
  /** Absent: a new one. */
  readonly webhook: Webhook | undefined;
  /** Called on each change of the text. */
  readonly onEndpoint: (endpoint: string) => void;
}) {
  return (
    <>
      <label htmlFor="webhook-name">Name</label>
      <input
        id="webhook-name"
        name="name"
        maxLength={200}
        autoComplete="off"
        required
        defaultValue={webhook?.name ?? ''}
        {...FOCUSED}
      />
      <label htmlFor="webhook-endpoint">Endpoint (URL)</label>
      <input
        id="webhook-endpoint"
        name="endpoint"
        type="url"
        maxLength={2048}
        autoComplete="off"
        required
        placeholder="https://"
        defaultValue={webhook?.endpoint ?? ''}
        onInput={(event) => onEndpoint(event.currentTarget.value)}
      />
    </>
  );
}

/** True if stored headers would go to another server (scheme, host, port) than the one that they were given for. */
export function isElsewhere(endpoint: string, webhook: Webhook | undefined): boolean {
  const given = URL.parse(endpoint);
  return (
    webhook !== undefined && given !== null && given.origin !== URL.parse(webhook.endpoint)?.origin
  );
}
