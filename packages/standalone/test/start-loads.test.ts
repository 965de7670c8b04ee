/** Modules that the services load before they have read a setting: each takes up to a millisecond of every start. */
import { execFile } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { beforeAll, describe, expect, test } from 'vitest';

const SERVICES = ['intake', 'worker', 'api'] as const;
type ServiceName = (typeof SERVICES)[number];
const fileOf = (path: string): string =>
  fileURLToPath(new URL(`../../../${path}`, import.meta.url));

const LISTING = `data:text/javascript,${encodeURIComponent(`
  import { registerHooks } from 'node:module';
  const urls = [];
  registerHooks({ load: (url, context, next) => (urls.push(url), next(url, context)) });
  process.on('exit', () => process.stderr.write(JSON.stringify(urls)));
`)}`;

/** Without settings it ends once everything is loaded. */
const listLoaded = (service: ServiceName, ...imported: string[]): Promise<string[]> =>
  new Promise((resolve) => {
    const imports = [...imported, LISTING].map((each) => `--import=${each}`);
    const main = fileOf(`packages/${service}/src/main.ts`);
    const args = ['--disable-warning=ExperimentalWarning', ...imports, main];
    const env = { NODE_COMPILE_CACHE: process.env['NODE_COMPILE_CACHE'] };
    execFile(process.execPath, args, { env }, (_error, _stdout, stderr) =>
      resolve(JSON.parse(stderr) as string[]),
    );
  });

const loadedBy = { intake: [], worker: [], api: [] } as Record<ServiceName, string[]>;
const quicklyLoadedBy = { intake: [], worker: [], api: [] } as Record<ServiceName, string[]>;
beforeAll(async () => {
  await promisify(execFile)(process.execPath, [fileOf('scripts/join-packages.mjs')], { env: {} });
  for (const service of SERVICES) {
    loadedBy[service] = await listLoaded(service);
    quicklyLoadedBy[service] = await listLoaded(service, fileOf('scripts/quick-start.mjs'));
  }
}, 300_000);

const isOfPackage = (url: string): boolean => url.includes('/node_modules/');
const isJoined = (url: string): boolean => url.includes('/node_modules/.cache/joined/');
/** A decoder of messages for this platform, and the packages that find its file. */
const isNative = (url: string): boolean =>
  /\/node_modules\/(msgpackr-extract|node-gyp-build-optional-packages|detect-libc)\//.test(url);
const isOwn = (url: string): boolean => url.startsWith('file:') && url.endsWith('.ts');

describe.for(SERVICES)('the %s', (service) => {
  test('loads the payment provider’s SDK, the mail library, migrations, the description of intake’s calls and the sender of traces only when it needs them', () => {
    expect(loadedBy[service].some((url) => url.includes('/kysely/'))).toBe(true);
    const needless =
      /node_modules\/(stripe|nodemailer|@opentelemetry\/(?!api\/))|\/database\/src\/migrations\/|\/openapi\/(render-reference|intake\/(?!intake-tags))/;
    expect(loadedBy[service].filter((url) => needless.test(url))).toEqual([]);
  });

  test('loads the packages of its start from a few joined files', () => {
    const loaded = quicklyLoadedBy[service];
    expect(loaded.filter(isJoined).length).toBeGreaterThan(0);
    expect(loaded.filter(isJoined).length).toBeLessThan(30);
    expect(loaded.filter((url) => isOfPackage(url) && !isJoined(url) && !isNative(url))).toEqual(
      [],
    );
  });

  test('loads the same modules of ours from joined packages as from the packages themselves', () => {
    const ownOf = (urls: string[]) => urls.filter(isOwn).toSorted();
    expect(ownOf(quicklyLoadedBy[service])).toEqual(ownOf(loadedBy[service]));
  });
});
