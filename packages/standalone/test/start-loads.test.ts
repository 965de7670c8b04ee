/** Modules that the services load before they have read a setting: each takes a millisecond or two of every start. */
import { execFile } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { expect, test } from 'vitest';

const main = (service: string): string =>
  fileURLToPath(new URL(`../../${service}/src/main.ts`, import.meta.url));

const LISTING = `data:text/javascript,${encodeURIComponent(`
  import { registerHooks } from 'node:module';
  const urls = [];
  registerHooks({ load: (url, context, next) => (urls.push(url), next(url, context)) });
  process.on('exit', () => process.stderr.write(JSON.stringify(urls)));
`)}`;

/** Without settings it ends once everything is loaded. */
const listLoaded = (service: string): Promise<string[]> =>
  new Promise((resolve) => {
    const args = ['--disable-warning=ExperimentalWarning', '--import', LISTING, main(service)];
    const env = { NODE_COMPILE_CACHE: process.env['NODE_COMPILE_CACHE'] };
    execFile(process.execPath, args, { env }, (_error, _stdout, stderr) =>
      resolve(JSON.parse(stderr) as string[]),
    );
  });

test.for(['intake', 'worker', 'api'])(
  'the %s loads the payment provider’s SDK, migrations and the sender of traces only when it needs them',
  async (service) => {
    const loaded = await listLoaded(service);
    expect(loaded.some((url) => url.includes('/kysely/'))).toBe(true);
    const needless =
      /node_modules\/(stripe|@opentelemetry\/(?!api\/))|\/database\/src\/migrations\//;
    expect(loaded.filter((url) => needless.test(url))).toEqual([]);
  },
);
