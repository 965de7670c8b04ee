/**
 * One call of the API as it is pasted into a program: in curl and in six languages, each with its own means alone. The
 * key is read from the environment, so that it is never in a sample. Pure.
 */

export const SAMPLE_LANGUAGES = {
  curl: 'curl',
  node: 'Node',
  python: 'Python',
  go: 'Go',
  ruby: 'Ruby',
  php: 'PHP',
  java: 'Java',
} as const;

export type SampleLanguage = keyof typeof SAMPLE_LANGUAGES;

export interface SampleCall {
  /** In capitals. */
  readonly method: string;
  readonly url: string;
  /** `basic`: the key is the user, without a password. `pair`: user and password, with a colon between. */
  readonly auth: 'bearer' | 'basic' | 'pair' | 'none';
  /** Of the environment, which has the key. */
  readonly variable: string;
  /** A JSON value. Undefined: the call has no JSON. */
  readonly body?: unknown;
  /** A body that is no JSON, such as lines of JSON: sent byte for byte. */
  readonly raw?: { readonly type: string; readonly text: string } | undefined;
}

export function sampleOf(language: SampleLanguage, call: SampleCall): string {
  return WRITERS[language](call, contentOf(call));
}

interface Content {
  readonly type: string;
  readonly text: string;
  readonly isJson: boolean;
}

function contentOf({ body, raw }: SampleCall): Content | undefined {
  if (raw) return { ...raw, isJson: false };
  if (body === undefined) return undefined;
  return { type: 'application/json', text: JSON.stringify(body, null, 2), isJson: true };
}

type Writer = (call: SampleCall, content: Content | undefined) => string;

const indented = (text: string, by: string): string => text.replaceAll('\n', `\n${by}`);
/** Lines without the unneeded ones. */
const lines = (...given: (string | false | undefined)[]): string =>
  given.filter((line) => typeof line === 'string').join('\n');

const isBasic = (auth: SampleCall['auth']): boolean => auth === 'basic' || auth === 'pair';
const colonOf = (auth: SampleCall['auth']): string => (auth === 'basic' ? ':' : '');

/** In apostrophes, as a POSIX shell reads it. */
export const shellText = (text: string): string => `'${text.replaceAll("'", String.raw`'\''`)}'`;
/** In quotes, with the escapes that JSON has in common with Python, Go and Java. */
const quoted = (text: string): string => JSON.stringify(text);
/** In apostrophes, as Ruby and PHP read it. */
const apostrophed = (text: string): string => `'${text.replaceAll(/['\\]/g, String.raw`\$&`)}'`;

const curl: Writer = ({ method, url, auth, variable }, content) =>
  [
    `curl${method === 'GET' || (method === 'POST' && content) ? '' : ` -X ${method}`} ${shellText(url)}`,
    auth === 'bearer' && `  -H "Authorization: Bearer $${variable}"`,
    isBasic(auth) && `  -u "$${variable}${colonOf(auth)}"`,
    content && `  -H 'Content-Type: ${content.type}'`,
    // `-d` reads a file if the text begins with an at sign.
    content && `  ${content.isJson ? '-d' : '--data-raw'} ${shellText(content.text)}`,
  ]
    .filter((line) => typeof line === 'string')
    .join(' \\\n');

const node: Writer = ({ method, url, auth, variable }, content) =>
  lines(
    `const answer = await fetch(${quoted(url)}, {`,
    `  method: '${method}',`,
    '  headers: {',
    auth === 'bearer' && `    authorization: 'Bearer ' + process.env.${variable},`,
    isBasic(auth) &&
      `    authorization: 'Basic ' + btoa(process.env.${variable} + '${colonOf(auth)}'),`,
    content && `    'content-type': '${content.type}',`,
    '  },',
    content &&
      `  body: ${content.isJson ? `JSON.stringify(${indented(content.text, '  ')})` : quoted(content.text)},`,
    '});',
    'console.log(answer.status, await answer.text());',
  );

/** A JSON value as Python writes it. */
function pythonValue(value: unknown, indent: string): string {
  const inner = `${indent}    `;
  if (value === null || value === undefined) return 'None';
  if (typeof value === 'boolean') return value ? 'True' : 'False';
  if (Array.isArray(value))
    return value.length === 0
      ? '[]'
      : `[\n${value.map((item) => `${inner}${pythonValue(item, inner)},\n`).join('')}${indent}]`;
  if (typeof value !== 'object') return JSON.stringify(value);
  const entries = Object.entries(value);
  if (entries.length === 0) return '{}';
  return `{\n${entries.map(([name, item]) => `${inner}${quoted(name)}: ${pythonValue(item, inner)},\n`).join('')}${indent}}`;
}

const python: Writer = ({ method, url, auth, variable, body }, content) =>
  lines(
    `import ${[isBasic(auth) && 'base64', content?.isJson && 'json', auth !== 'none' && 'os', 'urllib.request'].filter((name) => typeof name === 'string').join(', ')}`,
    '',
    content && `body = ${content.isJson ? pythonValue(body, '') : quoted(content.text)}`,
    'request = urllib.request.Request(',
    `    ${quoted(url)},`,
    `    method="${method}",`,
    content && `    data=${content.isJson ? 'json.dumps(body)' : 'body'}.encode(),`,
    '    headers={',
    auth === 'bearer' && `        "Authorization": "Bearer " + os.environ["${variable}"],`,
    isBasic(auth) &&
      `        "Authorization": "Basic " + base64.b64encode((os.environ["${variable}"] + "${colonOf(auth)}").encode()).decode(),`,
    content && `        "Content-Type": "${content.type}",`,
    '    },',
    ')',
    'with urllib.request.urlopen(request) as answer:',
    '    print(answer.status, answer.read().decode())',
  );

/** Between grave accents, which Go reads as they are, if the text has neither these nor carriage returns. */
const goText = (text: string): string => (/[`\r]/.test(text) ? quoted(text) : `\`${text}\``);

const go: Writer = ({ method, url, auth, variable }, content) =>
  lines(
    'package main',
    '',
    'import (',
    isBasic(auth) && '\t"encoding/base64"',
    '\t"fmt"',
    '\t"io"',
    '\t"net/http"',
    auth !== 'none' && '\t"os"',
    content && '\t"strings"',
    ')',
    '',
    'func main() {',
    content === undefined
      ? `\trequest, err := http.NewRequest("${method}", ${quoted(url)}, nil)`
      : `\tbody := strings.NewReader(${goText(content.text)})\n\trequest, err := http.NewRequest("${method}", ${quoted(url)}, body)`,
    '\tif err != nil {',
    '\t\tpanic(err)',
    '\t}',
    auth === 'bearer' &&
      `\trequest.Header.Set("Authorization", "Bearer "+os.Getenv("${variable}"))`,
    isBasic(auth) &&
      `\trequest.Header.Set("Authorization", "Basic "+base64.StdEncoding.EncodeToString([]byte(os.Getenv("${variable}")+"${colonOf(auth)}")))`,
    content && `\trequest.Header.Set("Content-Type", "${content.type}")`,
    '\tanswer, err := http.DefaultClient.Do(request)',
    '\tif err != nil {',
    '\t\tpanic(err)',
    '\t}',
    '\tdefer answer.Body.Close()',
    '\ttext, err := io.ReadAll(answer.Body)',
    '\tif err != nil {',
    '\t\tpanic(err)',
    '\t}',
    '\tfmt.Println(answer.StatusCode, string(text))',
    '}',
  );

const ruby: Writer = ({ method, url, auth, variable }, content) =>
  lines(
    "require 'net/http'",
    '',
    `uri = URI(${apostrophed(url)})`,
    `request = Net::HTTP::${method.charAt(0)}${method.slice(1).toLowerCase()}.new(uri)`,
    auth === 'bearer' && `request['Authorization'] = "Bearer #{ENV.fetch('${variable}')}"`,
    isBasic(auth) &&
      `request['Authorization'] = "Basic #{[ENV.fetch('${variable}') + '${colonOf(auth)}'].pack('m0')}"`,
    // Of a call without a body too: Ruby sends an empty form otherwise, which the API refuses.
    (content || method === 'POST' || method === 'PUT') &&
      `request['Content-Type'] = '${content?.type ?? 'application/json'}'`,
    content &&
      `request.body = ${content.isJson ? `<<'JSON'\n${content.text}\nJSON` : apostrophed(content.text)}`,
    "answer = Net::HTTP.start(uri.host, uri.port, use_ssl: uri.scheme == 'https') { |http| http.request(request) }",
    'puts answer.code, answer.body',
  );

const php: Writer = ({ method, url, auth, variable }, content) =>
  lines(
    '<?php',
    content &&
      `$body = ${content.isJson ? `<<<'JSON'\n${content.text}\nJSON` : apostrophed(content.text)};`,
    `$call = curl_init(${apostrophed(url)});`,
    'curl_setopt_array($call, [',
    '    CURLOPT_RETURNTRANSFER => true,',
    `    CURLOPT_CUSTOMREQUEST => '${method}',`,
    isBasic(auth) && `    CURLOPT_USERPWD => getenv('${variable}') . '${colonOf(auth)}',`,
    '    CURLOPT_HTTPHEADER => [',
    auth === 'bearer' && `        'Authorization: Bearer ' . getenv('${variable}'),`,
    content && `        'Content-Type: ${content.type}',`,
    '    ],',
    content && '    CURLOPT_POSTFIELDS => $body,',
    ']);',
    '$text = curl_exec($call);',
    'echo curl_getinfo($call, CURLINFO_RESPONSE_CODE), " ", $text, "\\n";',
  );

/** A text block of Java 15; within it a backslash and three quotes are escaped. */
const javaBlock = (text: string): string =>
  `"""\n${text.replaceAll('\\', String.raw`\\`).replaceAll('"""', String.raw`\"""`)}"""`;

const java: Writer = ({ method, url, auth, variable }, content) =>
  lines(
    'import java.net.URI;',
    'import java.net.http.HttpClient;',
    'import java.net.http.HttpRequest;',
    'import java.net.http.HttpResponse;',
    isBasic(auth) && 'import java.util.Base64;',
    '',
    'class Call {',
    '  public static void main(String[] args) throws Exception {',
    // A text block has no spaces at the ends of its lines.
    content && `    var body = ${content.isJson ? javaBlock(content.text) : quoted(content.text)};`,
    auth === 'bearer' && `    var authorization = "Bearer " + System.getenv("${variable}");`,
    isBasic(auth) &&
      `    var authorization = "Basic " + Base64.getEncoder().encodeToString((System.getenv("${variable}") + "${colonOf(auth)}").getBytes());`,
    `    var request = HttpRequest.newBuilder(URI.create(${quoted(url)}))`,
    auth !== 'none' && '        .header("Authorization", authorization)',
    content && `        .header("Content-Type", "${content.type}")`,
    content === undefined
      ? `        .method("${method}", HttpRequest.BodyPublishers.noBody())`
      : `        .method("${method}", HttpRequest.BodyPublishers.ofString(body))`,
    '        .build();',
    '    var answer = HttpClient.newHttpClient().send(request, HttpResponse.BodyHandlers.ofString());',
    '    System.out.println(answer.statusCode() + " " + answer.body());',
    '  }',
    '}',
  );

const WRITERS: Readonly<Record<SampleLanguage, Writer>> = {
  curl,
  node,
  python,
  go,
  ruby,
  php,
  java,
};
