/**
 * `npm run test:distributed -- URL [FILE…]`: runs the integration tests of the database, the worker and the API with
 * the schema on Citus. URL names a database of a superuser on the coordinator, with the extension and its nodes; every
 * test gets databases of its own beside it, on each node. Prints a table, and ends with 1 if less than 98 of 100 tests
 * pass, or one fails that `distributed-exceptions.ts` does not explain.
 */
import { spawn } from 'node:child_process';
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join, relative } from 'node:path';
import { DISTRIBUTED_EXCEPTIONS } from './distributed-exceptions.ts';

const PACKAGES = ['database', 'worker', 'api'] as const;
const PASSED_SHARE_MIN = 0.98;
const ROOT = join(import.meta.dirname, '..');

interface TestReport {
  readonly testResults: readonly {
    /** Of the file. */
    readonly name: string;
    readonly status: string;
    readonly message: string;
    readonly assertionResults: readonly {
      readonly fullName: string;
      readonly status: string;
      readonly failureMessages: readonly string[];
    }[];
  }[];
}

interface TestResult {
  readonly package: string;
  readonly file: string;
  readonly name: string;
  readonly status: 'passed' | 'failed' | 'skipped';
  readonly message: string;
}

const [, , url, ...files] = process.argv;
if (url === undefined || !/^postgres(ql)?:\/\//.test(url)) {
  console.error(
    'usage: npm run test:distributed -- postgres://user@coordinator:port/database [FILE…]',
  );
  process.exit(2);
}

const results = await runTests(url, files);
printTable(results);
const failed = results.filter(({ status }) => status === 'failed');
const unexplained = failed.filter((each) => reasonOf(each) === undefined);
for (const each of failed)
  console.log(`\n${each.file}: ${each.name}\n  ${reasonOf(each) ?? each.message}`);
const ran = results.filter(({ status }) => status !== 'skipped');
const share = (ran.length - failed.length) / ran.length;
if (!(share >= PASSED_SHARE_MIN) || unexplained.length > 0) process.exitCode = 1;

async function runTests(
  testDatabaseUrl: string,
  filters: readonly string[],
): Promise<TestResult[]> {
  const directory = await mkdtemp(join(tmpdir(), 'sluice-distributed-'));
  const outputFile = join(directory, 'results.json');
  try {
    const projects = PACKAGES.flatMap((name) => ['--project', name]);
    const wanted =
      filters.length > 0 ? filters : PACKAGES.map((name) => `packages/${name}/test/integration/`);
    await new Promise<void>((resolve, reject) => {
      const child = spawn(
        join(ROOT, 'node_modules/.bin/vitest'),
        [
          'run',
          ...projects,
          '--reporter=default',
          '--reporter=json',
          `--outputFile=${outputFile}`,
          ...wanted,
        ],
        {
          cwd: ROOT,
          env: { ...process.env, TEST_DATABASE_URL: testDatabaseUrl },
          stdio: ['ignore', 'inherit', 'inherit'],
        },
      );
      child.on('error', reject);
      // Its own verdict does not know the exceptions.
      child.on('exit', () => resolve());
    });
    const report = JSON.parse(await readFile(outputFile, 'utf8')) as TestReport;
    return report.testResults.flatMap(resultsOf);
  } finally {
    await rm(directory, { recursive: true, force: true });
  }
}

function resultsOf({
  name,
  status,
  message,
  assertionResults,
}: TestReport['testResults'][number]): TestResult[] {
  const file = relative(ROOT, name);
  const of = { package: file.split('/')[1] ?? '', file };
  // A file that fails as a whole has no tests.
  if (assertionResults.length === 0 && status === 'failed')
    return [{ ...of, name: 'the file', status: 'failed', message: firstLine(message) }];
  return assertionResults.map((each) => ({
    ...of,
    name: each.fullName.trim(),
    status: each.status === 'passed' || each.status === 'failed' ? each.status : 'skipped',
    message: firstLine(each.failureMessages[0] ?? ''),
  }));
}

function firstLine(text: string): string {
  return text.split('\n', 1)[0] ?? '';
}

function printTable(all: readonly TestResult[]): void {
  console.log(
    '\n| package | tests | passed | explained | failed | skipped |\n|---|---:|---:|---:|---:|---:|',
  );
  for (const name of [...PACKAGES, 'all']) {
    const own = all.filter((each) => name === 'all' || each.package === name);
    const of = (status: TestResult['status']) => own.filter((each) => each.status === status);
    const explained = of('failed').filter((each) => reasonOf(each) !== undefined).length;
    const counts = [
      own.length,
      of('passed').length,
      explained,
      of('failed').length - explained,
      of('skipped').length,
    ];
    console.log(`| ${name} | ${counts.join(' | ')} |`);
  }
}

function reasonOf({ file, name }: TestResult): string | undefined {
  return DISTRIBUTED_EXCEPTIONS.find((each) => file.endsWith(each.file) && name.includes(each.test))
    ?.reason;
}
