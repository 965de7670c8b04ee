/**
 * Findings of two linters about an OpenAPI document.
 *
 * Redocly and Spectral judge it by their recommended rules. Errors and warnings both are findings.
 *
 * Used by `check-description.ts`.
 */
import { execFile } from 'node:child_process';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { Document, type RulesetDefinition, Spectral } from '@stoplight/spectral-core';
import parsers from '@stoplight/spectral-parsers';
import { oas } from '@stoplight/spectral-rulesets';

const run = promisify(execFile);
const NAME = 'openapi.json';
const REDOCLY = fileURLToPath(new URL('../node_modules/@redocly/cli/bin/cli.js', import.meta.url));
const OUTPUT_SIZE_BYTES_MAX = 64 * 2 ** 20;

/** Each has the tool, the rule and the place. */
export async function findingsOf(text: string): Promise<string[]> {
  return (await Promise.all([findingsOfRedocly(text), findingsOfSpectral(text)])).flat();
}

interface RedoclyProblem {
  readonly ruleId: string;
  readonly severity: string;
  readonly message: string;
  readonly location: readonly { readonly pointer?: string }[];
}

/** By its program, which has no dependencies; its library has twenty. */
async function findingsOfRedocly(text: string): Promise<string[]> {
  const folder = await mkdtemp(join(tmpdir(), 'sluice-description-'));
  try {
    const file = join(folder, NAME);
    await writeFile(file, text);
    const words = ['lint', file, '--extends=recommended', '--format=json', '--max-problems=1000'];
    const { stdout, stderr } = await run(process.execPath, [REDOCLY, ...words], {
      cwd: folder,
      env: { REDOCLY_TELEMETRY: 'off', REDOCLY_SUPPRESS_UPDATE_NOTICE: 'true' },
      maxBuffer: OUTPUT_SIZE_BYTES_MAX,
    }).catch((failed: { stdout: string; stderr: string }) => failed);
    if (stdout === '') throw new Error(`Redocly has not judged the description: ${stderr}`);
    const { problems } = JSON.parse(stdout) as { problems: readonly RedoclyProblem[] };
    return problems.map(({ ruleId, severity, message, location: [place] }) =>
      finding('Redocly', `${severity} ${ruleId}`, place?.pointer ?? '', message),
    );
  } finally {
    await rm(folder, { recursive: true });
  }
}

async function findingsOfSpectral(text: string): Promise<string[]> {
  const spectral = new Spectral();
  // Its own type has no `extends`, which the other package's type requires.
  const rules = oas as unknown as RulesetDefinition;
  spectral.setRuleset({ extends: [[rules, 'recommended']] });
  const results = await spectral.run(new Document(text, parsers.Json, NAME));
  return results.map(({ code, path, message }) =>
    finding('Spectral', String(code), path.join('/'), message),
  );
}

const finding = (tool: string, rule: string, place: string, message: string): string =>
  [tool, rule, place, message].join(': ');
