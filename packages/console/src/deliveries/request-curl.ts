/** The request of an attempt as it is pasted into a shell. Pure. */
import { shellText } from '../sentences/code-samples.ts';

/** As the API shows it: a header whose value is not shown has a text in parentheses. */
export interface SentRequest {
  readonly method: string;
  readonly url: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
  readonly size_bytes: number;
}

/** Without the headers whose values are not shown. The body is sent byte for byte, so that its signature fits. */
export const curlOfRequest = ({ method, url, headers, body }: SentRequest): string =>
  [
    `curl -X ${method} ${shellText(url)}`,
    ...Object.entries(headers)
      .filter(([, value]) => !value.startsWith('('))
      .map(([name, value]) => `  -H ${shellText(`${name}: ${value}`)}`),
    `  --data-raw ${shellText(body)}`,
  ].join(' \\\n');
