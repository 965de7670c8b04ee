/** The request of an attempt, and code that verifies its signature. */
import { get } from '../client/calls.ts';
import { useResource } from '../client/resource.ts';
import { useReach } from '../client/session.ts';
import { CopyButton } from '../parts/copy-button.tsx';
import { JsonView } from '../json/json-view.tsx';
import { Shown } from '../parts/states.tsx';
import { useSetQuery } from '../routing/router.tsx';
import type { OfWebhook } from './delivery.ts';
import { curlOfRequest } from './request-curl.ts';
import { VERIFY_LANGUAGES, VERIFY_SAMPLES } from './verify-samples.ts';

/** The request: the head, and the body byte for byte. */
export function RequestView({
  webhookId,
  sequence,
  attempt,
  eventType,
  language,
}: OfWebhook & {
  readonly sequence: number;
  readonly attempt: number;
  readonly eventType: string;
  /** Of the sample that verifies its signature. Absent: the samples are closed. */
  readonly language: string | undefined;
}) {
  const { workspaceId } = useReach();
  const resource = useResource(
    get('/v1/reporting_webhooks/{webhook_id}/deliveries/{sequence}/attempts/{attempt}/request', {
      path: { webhook_id: webhookId, sequence, attempt },
    }),
    { workspaceId },
  );
  return (
    <Shown resource={resource} lines={3}>
      {({ request: sent }) => (
        <>
          <JsonView
            value={[
              `${sent.method} ${sent.url}`,
              ...Object.entries(sent.headers).map(([name, value]) => `${name}: ${value}`),
            ].join('\n')}
            label="Request line and headers that were sent"
          />
          <JsonView
            value={sent.body}
            label={`Body that was sent, ${sent.size_bytes} bytes`}
            filterOf={(part, value) => filterOf(part, value, eventType)}
          />
          <p>
            <CopyButton text={curlOfRequest(sent)} label="Copy the request as curl" />
          </p>
          {'x-svc-signature' in sent.headers && <VerifySample language={language} />}
        </>
      )}
    </Shown>
  );
}

/** Filters of the list of deliveries. The person's is the id of the sender. */
function filterOf(
  path: string,
  value: unknown,
  eventType: string,
): Readonly<Record<string, string>> | undefined {
  if (typeof value !== 'string') return undefined;
  if (path === 'event_id') return { event: value };
  if (path === 'metric' || path === 'object_type') return { type: eventType };
  return path === 'data.identifiers.id' || path === 'data.customer_id'
    ? { person: value }
    : undefined;
}

function VerifySample({ language }: { readonly language: string | undefined }) {
  const setQuery = useSetQuery();
  const sample = Object.entries(VERIFY_SAMPLES).find(([id]) => id === language)?.[1];
  return (
    <>
      <div className="tabs" role="group" aria-label="Verify its signature in">
        <span>Verify its signature in</span>
        {Object.entries(VERIFY_LANGUAGES).map(([id, name]) => (
          <button
            key={id}
            type="button"
            aria-pressed={id === language}
            onClick={() => setQuery({ verify: id === language ? undefined : id })}
          >
            {name}
          </button>
        ))}
      </div>
      {sample !== undefined && (
        <div className="json">
          <div className="row">
            <span>With the secret of the webhook, from the environment of your receiver</span>
            <span className="grow" />
            <CopyButton text={sample} label="Copy the code">
              Copy
            </CopyButton>
          </div>
          <pre tabIndex={0} role="region" aria-label="Code that verifies the signature">
            {sample}
          </pre>
        </div>
      )}
    </>
  );
}
