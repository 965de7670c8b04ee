/**
 * Clients in other languages, installed by the languages' own tools.
 *
 * They go into `node_modules`, once for each list of them. Without the language or a package registry, a line on
 * standard error names the missing part and the tests are skipped.
 */
import { execFile, spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { existsSync } from 'node:fs';
import { mkdir, rename, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';

const NODE_MODULES = fileURLToPath(new URL('../../../../node_modules', import.meta.url));
const INSTALL_MS_MAX = 90_000;

interface Language {
  readonly name: string;
  /** Answers with the version, on one of the streams. */
  readonly version: readonly [string, ...string[]];
  readonly packages: readonly string[];
  /** Puts the packages into the folder, which is there. */
  readonly install: (folder: string, packages: readonly string[]) => Promise<void>;
}

async function run(command: string, words: readonly string[]): Promise<void> {
  await promisify(execFile)(command, words, { timeout: INSTALL_MS_MAX });
}

export const PYTHON: Language = {
  name: 'Python',
  version: ['python3', '--version'],
  packages: [
    'customerio==3.2.0',
    'customerio-cdp-analytics==1.1.0',
    'segment-analytics-python==2.4.0',
    'rudder-sdk-python==2.1.9',
  ],
  install: (folder, packages) =>
    run('python3', [
      ...['-m', 'pip', 'install', '--quiet', '--no-input', '--disable-pip-version-check'],
      ...['--timeout', '5', '--retries', '1', '--target', folder, ...packages],
    ]),
};

/** `group:artifact:version` */
const toDependency = (name: string): string => {
  const [group, artifact, version] = name.split(':');
  return `<dependency><groupId>${group}</groupId><artifactId>${artifact}</artifactId><version>${version}</version></dependency>`;
};

export const JAVA: Language = {
  name: 'Java',
  version: ['java', '--version'],
  packages: ['com.segment.analytics.java:analytics:3.5.4'],
  async install(folder, packages) {
    await writeFile(
      join(folder, 'pom.xml'),
      `<project><modelVersion>4.0.0</modelVersion><groupId>test</groupId><artifactId>test</artifactId><version>1</version>
      <dependencies>${packages.map(toDependency).join('')}</dependencies></project>`,
    );
    const goal = 'org.apache.maven.plugins:maven-dependency-plugin:3.8.1:copy-dependencies';
    const words = ['--batch-mode', '--quiet', '--file', folder, goal];
    await run('mvn', [...words, `-DoutputDirectory=${folder}`]);
  },
};

/** The folder of the clients; undefined if they cannot be had. */
export async function installClients(language: Language): Promise<string | undefined> {
  const { name, version, packages, install } = language;
  const [command, ...words] = version;
  const found = spawnSync(command, words, { encoding: 'utf8' });
  if (found.status !== 0) return skip(name, `there is no ${command}`);
  const said = `${found.stdout}${found.stderr}${packages.join()}`;
  const kind = createHash('sha256').update(said).digest('hex').slice(0, 12);
  const folder = join(NODE_MODULES, `.sluice-${name.toLowerCase()}-${kind}`);
  if (existsSync(folder)) return folder;
  const made = `${folder}.${process.pid}`;
  try {
    await mkdir(made, { recursive: true });
    await install(made, packages);
    await rename(made, folder);
    return folder;
  } catch (error) {
    await rm(made, { recursive: true, force: true });
    const { stderr = '', message } = error as { stderr?: string; message: string };
    return skip(name, (stderr.trim() || message).split('\n').at(-1) ?? '');
  }
}

function skip(name: string, why: string): undefined {
  process.stderr.write(`the clients of ${name} are not tested, they cannot be installed: ${why}\n`);
}
