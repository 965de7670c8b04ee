/** The request of an attempt as it is pasted into a shell. Pure. */
import type { AnswerOf } from '../client/operations.ts';
import { shellText } from '../sentences/code-samples.ts';

/** As the API shows it: a header whose value is not shown has a text in parentheses. */
type SentRequest = AnswerOf<
  'get',
  '/v1/reporting_webhooks/{webhook_id}/deliveries/{sequence}/attempts/{attempt}/request'
>['request'];

/** Without the headers whose values are not shown. The body is sent byte for byte, so that its signature fits. */
export const curlOfRequest = ({ method, url, headers, body }: SentRequest): string =>
  [
    `curl -X ${method} ${shellText(url)}`,
    ...Object.entries(headers)
      .filter(([, value]) => !value.startsWith('('))
      .map(([name, value]) => `  -H ${shellText(`${name}: ${value}`)}`),
    `  --data-raw ${shellText(body)}`,
  ].join(' \\\n');
