/**
 * The first calls, to be pasted: an event by the Pipelines API, the same in each language, and a webhook for it. Pure.
 */

/** The body of `POST /v1/reporting_webhooks`, for the event of the snippets. */
export const FIRST_WEBHOOK = {
  name: 'Orders',
  endpoint: 'https://example.com/hook',
  events: ['event'],
  event_names: ['order_placed'],
} as const;

export const LANGUAGES = [
  { id: 'curl', name: 'curl' },
  { id: 'node', name: 'Node' },
  { id: 'browser', name: 'Browser' },
  { id: 'python', name: 'Python' },
  { id: 'go', name: 'Go' },
  { id: 'ruby', name: 'Ruby' },
] as const;

export type Language = (typeof LANGUAGES)[number]['id'];

export interface SnippetFacts {
  readonly intakeUrl: string;
  /** Of a demo; else the variable of a shell that holds it, `$SLUICE_WRITE_KEY`. */
  readonly writeKey: string;
}

export function snippetOf(language: Language, { intakeUrl, writeKey }: SnippetFacts): string {
  const url = `${intakeUrl}/v1/track`;
  const isVariable = writeKey.startsWith('$');
  const name = writeKey.slice(1);
  const key = (ofEnvironment: string, quote = "'"): string =>
    isVariable ? ofEnvironment : `${quote}${writeKey}${quote}`;
  switch (language) {
    case 'curl':
      return `curl -u "${writeKey}:" -H 'Content-Type: application/json' -H 'X-Strict-Mode: 1' \\
  -d '{"userId":"ada","event":"order_placed","properties":{"total":12}}' \\
  ${url}`;
    case 'node':
      return `const key = ${key(`process.env.${name}`)};
const answer = await fetch('${url}', {
  method: 'POST',
  headers: {
    authorization: 'Basic ' + btoa(key + ':'),
    'content-type': 'application/json',
    'x-strict-mode': '1',
  },
  body: JSON.stringify({ userId: 'ada', event: 'order_placed', properties: { total: 12 } }),
});
console.log(answer.status, await answer.text());`;
    case 'browser':
      return `<script src="${intakeUrl}/v1/analytics-js/snippet/"></script>
<script>
  analytics.load('${isVariable ? 'YOUR_WRITE_KEY' : writeKey}');
  analytics.track('order_placed', { total: 12 });
</script>`;
    case 'python':
      return `import base64, json, os, urllib.request

key = ${key(`os.environ["${name}"]`, '"')}
request = urllib.request.Request(
    "${url}",
    data=json.dumps({"userId": "ada", "event": "order_placed", "properties": {"total": 12}}).encode(),
    headers={
        "Authorization": "Basic " + base64.b64encode(f"{key}:".encode()).decode(),
        "Content-Type": "application/json",
        "X-Strict-Mode": "1",
    },
)
print(urllib.request.urlopen(request).status)`;
    case 'go':
      return `package main

import (
${['fmt', 'net/http', ...(isVariable ? ['os'] : []), 'strings'].map((each) => `\t"${each}"`).join('\n')}
)

func main() {
	body := strings.NewReader(\`{"userId":"ada","event":"order_placed","properties":{"total":12}}\`)
	request, err := http.NewRequest("POST", "${url}", body)
	if err != nil {
		panic(err)
	}
	request.SetBasicAuth(${key(`os.Getenv("${name}")`, '"')}, "")
	request.Header.Set("Content-Type", "application/json")
	request.Header.Set("X-Strict-Mode", "1")
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		panic(err)
	}
	fmt.Println(answer.Status)
}`;
    case 'ruby':
      return `require "net/http"
require "json"

uri = URI("${url}")
request = Net::HTTP::Post.new(uri, "Content-Type" => "application/json", "X-Strict-Mode" => "1")
request.basic_auth ${key(`ENV.fetch("${name}")`, '"')}, ""
request.body = { userId: "ada", event: "order_placed", properties: { total: 12 } }.to_json
puts Net::HTTP.start(uri.host, uri.port, use_ssl: uri.scheme == "https") { |http| http.request(request) }.code`;
  }
}
