/**
 * Executes the steps of a Dockerfile without Docker, by `chroot`.
 *
 * The folders of each stage become a root: a Debian of its own with the Node that its base image has. Needs root,
 * `debootstrap`, a network, and some minutes.
 */
import { spawn, spawnSync } from 'node:child_process';
import { cpSync, existsSync, mkdirSync, readdirSync, statSync } from 'node:fs';
import { basename, dirname, isAbsolute, join } from 'node:path';
import type { DockerfileStage } from './dockerfile-steps.ts';

/** Start of a container of the image. */
export interface BuiltImage {
  readonly root: string;
  readonly workingDirectory: string;
  readonly environment: Readonly<Record<string, string>>;
  readonly user: string;
  readonly volumes: readonly string[];
  readonly entrypoint: readonly string[];
}

const DEBIAN = 'bookworm';
/** The authorities that this machine trusts: a network may end TLS by one of its own. */
const CERTIFICATES = '/etc/ssl/certs/ca-certificates.crt';
const PATH = '/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin';

/** @throws Error with the end of the failed command's output. */
export function run(command: string, words: readonly string[], cwd?: string): void {
  const { status, stdout, stderr } = spawnSync(command, words, {
    ...(cwd !== undefined && { cwd }),
    encoding: 'utf8',
    maxBuffer: 2 ** 28,
  });
  if (status === 0) return;
  const said = `${stdout}${stderr}`.trimEnd().split('\n').slice(-15).join('\n');
  throw new Error(`${command} ${words.join(' ')} ended with ${status}:\n${said}`);
}

/** A Debian with this Node, its npm and the user `node`, as the official image has them. */
export function makeBase(root: string, nodeFolder: string, npmFolder: string): void {
  run('debootstrap', ['--variant=minbase', DEBIAN, root]);
  cpSync(join(nodeFolder, 'bin/node'), join(root, 'usr/local/bin/node'));
  cpSync(npmFolder, join(root, 'usr/local/lib/node_modules/npm'), { recursive: true });
  run('ln', ['-s', '../lib/node_modules/npm/bin/npm-cli.js', join(root, 'usr/local/bin/npm')]);
  run('chroot', [root, 'useradd', '--uid', '1000', '--create-home', 'node']);
  for (const file of ['/etc/resolv.conf', '/etc/hosts', CERTIFICATES])
    if (existsSync(file)) cpSync(file, join(root, file), { dereference: true });
}

/**
 * @param context - the folder that `COPY` takes from, without the files of `.dockerignore`.
 * @param base - the root that each stage begins with.
 */
export function buildStages(
  stages: readonly DockerfileStage[],
  folder: string,
  context: string,
  base: string,
  onStep: (line: string) => void,
): BuiltImage {
  const roots = new Map<string, string>();
  let built: BuiltImage | undefined;
  for (const [index, stage] of stages.entries()) {
    const root = join(folder, `stage-${index}`);
    run('cp', ['-a', base, root]);
    roots.set(stage.name ?? String(index), root);
    built = buildStage(stage, root, context, roots, onStep);
  }
  if (!built) throw new Error('the Dockerfile has no stage');
  return built;
}

function buildStage(
  stage: DockerfileStage,
  root: string,
  context: string,
  roots: ReadonlyMap<string, string>,
  onStep: (line: string) => void,
): BuiltImage {
  let workingDirectory = '/';
  let environment: Record<string, string> = { PATH };
  let user = 'root';
  let entrypoint: readonly string[] = [];
  const volumes: string[] = [];
  const inRoot = (path: string): string =>
    join(root, isAbsolute(path) ? path : join(workingDirectory, path));
  for (const step of stage.steps) {
    switch (step.step) {
      case 'workdir':
        workingDirectory = step.path;
        mkdirSync(inRoot('.'), { recursive: true });
        break;
      case 'environment':
        environment = { ...environment, ...step.variables };
        break;
      case 'user':
        user = step.name;
        break;
      case 'volume':
        volumes.push(...step.paths);
        break;
      case 'entrypoint':
        entrypoint = step.words;
        break;
      case 'copy': {
        const from = step.from === undefined ? context : (roots.get(step.from) ?? '');
        for (const source of step.sources) copy(join(from, source), inRoot(step.target), step);
        break;
      }
      case 'run':
        onStep(step.command.slice(0, 100));
        run('chroot', [
          ...[
            root,
            ...wordsOfUser(user),
            'env',
            '-i',
            ...Object.entries(environment).map(([name, value]) => `${name}=${value}`),
          ],
          ...[
            `HOME=${user === 'root' ? '/root' : `/home/${user}`}`,
            `NODE_EXTRA_CA_CERTS=${CERTIFICATES}`,
            '/bin/sh',
            '-ec',
            `cd ${workingDirectory}; ${step.command}`,
          ],
        ]);
        break;
    }
  }
  return { root, workingDirectory, environment, user, volumes, entrypoint };
}

/** A step after `USER` runs as that user. */
const wordsOfUser = (user: string): string[] =>
  user === 'root' ? [] : ['setpriv', `--reuid=${user}`, `--regid=${user}`, '--clear-groups'];

/**
 * As `COPY` does. Of a folder it copies the content. It copies into a folder if the target ends in a slash, or there
 * are several sources.
 */
function copy(
  source: string,
  target: string,
  { sources, target: named }: { readonly sources: readonly string[]; readonly target: string },
): void {
  if (statSync(source).isDirectory()) {
    mkdirSync(target, { recursive: true });
    for (const name of readdirSync(source)) run('cp', ['-a', join(source, name), `${target}/`]);
    return;
  }
  const isFolder = named.endsWith('/') || sources.length > 1 || existsSync(target);
  mkdirSync(isFolder ? target : dirname(target), { recursive: true });
  run('cp', [
    '-a',
    source,
    isFolder && statSync(target).isDirectory() ? join(target, basename(source)) : target,
  ]);
}

/**
 * Starts a program of the image as the manifests do: on a root that cannot be written, as the image's user, without
 * capabilities and without a way to new ones. Its volumes and `/tmp` are its own, and gone with it.
 */
export function startInImage(
  { root, workingDirectory, environment, user, volumes, entrypoint }: BuiltImage,
  program: string,
  settings: Readonly<Record<string, string>>,
) {
  const mounts = [
    `mount --bind ${root} ${root}`,
    `mount -o remount,bind,ro ${root}`,
    `mount -t proc proc ${root}/proc`,
    `mount --bind /dev ${root}/dev`,
    `mount -t tmpfs tmpfs ${root}/tmp`,
    ...volumes.flatMap((path) => [
      `mount -t tmpfs tmpfs ${root}${path}`,
      `chroot ${root} chown ${user}:${user} ${path}`,
    ]),
  ];
  const confined = [
    ...['setpriv', `--reuid=${user}`, `--regid=${user}`, '--clear-groups', '--inh-caps=-all'],
    ...['--bounding-set=-all', '--no-new-privs', 'env', '-i', '-C', workingDirectory],
    ...Object.entries({ ...environment, ...settings }).map(([name, value]) => `${name}=${value}`),
    ...entrypoint,
    program,
  ];
  return spawn(
    'unshare',
    [
      // Without a fork each program takes the place of the one before, so a signal reaches the service.
      ...['--mount', '--propagation', 'private'],
      ...['/bin/sh', '-ec', `${mounts.join('; ')}; exec chroot "$@"`, 'sh', root, ...confined],
    ],
    { stdio: ['ignore', 'pipe', 'pipe'], env: { PATH } },
  );
}
