/** `sluice imports …`, and `sluice import FILE`: a CSV of events into the workspace, watched until every row was read. */
import { randomUUID } from 'node:crypto';
import { createReadStream, openAsBlob } from 'node:fs';
import { access, constants, stat } from 'node:fs/promises';
import { basename } from 'node:path';
import { blob } from 'node:stream/consumers';
import { type ApiClient, type components, resultOf } from '@sluice/client';
import { AppError, reasonOf } from '@sluice/domain/values/errors';
import { Option, type Command } from 'commander';
import { notEmpty, positiveInteger } from '../input/arguments.ts';
import { noteMore, writeFields, writeRows } from '../output/result.ts';
import type { Terminal } from '../output/terminal.ts';

interface ImportContext {
  readonly program: Command;
  readonly api: () => ApiClient;
  readonly terminal: () => Terminal;
  readonly deps: {
    readonly pause: (durationMs: number) => Promise<unknown>;
    readonly signal: AbortSignal;
    readonly setExitCode: (code: number) => void;
    readonly setInterrupted: () => void;
  };
}

type ImportForm = components['schemas']['NewImportFormInput'];

type Import = Pick<
  components['schemas']['Import'],
  'id' | 'state' | 'percent' | 'rows_read' | 'rows_failed'
>;

const POLL_INTERVAL_MS = 500;
const ENDED: ReadonlySet<Import['state']> = new Set(['imported', 'failed', 'canceled']);

const FORM_DATA = 'Content-Disposition: form-data';

export function addImportCommands(context: ImportContext): void {
  const { program, api, terminal } = context;
  // When this was the only action on imports, it was a command of its own.
  addSending(program.command('import'), context);
  const imports = program.command('imports').description('imports of events from CSV files');
  addSending(imports.command('create'), context);
  imports
    .command('list')
    .description('newest first, and how far each is')
    .action(async () => {
      const { imports: found, next } = await resultOf(api().GET('/v1/imports'));
      const output = terminal();
      writeRows(
        output,
        found,
        ['id', 'name', 'state', 'percent', 'rows_imported', 'rows_failed', 'created_at'],
        'no import yet; imports create FILE begins one',
      );
      noteMore(output, next, 'the console has all of them');
    });
  imports
    .command('show')
    .argument('<id>', 'of the import', positiveInteger)
    .option('--watch', 'until it has ended, and show how far it is')
    .description('one import and how far it is; with --watch it exits 1 if rows failed')
    .action(async (id: number, { watch }: { watch?: true }) => {
      if (watch) return watchToEnd(id, context);
      const params = { path: { import_id: id } };
      writeFields(terminal(), await resultOf(api().GET('/v1/imports/{import_id}', { params })));
      return undefined;
    });
  imports
    .command('cancel')
    .argument('<id>', 'of the import', positiveInteger)
    .description('ends an import; imported rows stay')
    .action(async (id: number) => {
      const params = { path: { import_id: id } };
      writeFields(
        terminal(),
        await resultOf(api().POST('/v1/imports/{import_id}/cancel', { params })),
      );
    });
}

function addSending(command: Command, context: ImportContext): void {
  const { api, terminal } = context;
  command
    .argument('<file>', 'CSV with the columns _svc_name and _svc_customer_id')
    .addOption(
      new Option('--identifier <kind>', 'type of the identifiers in _svc_customer_id')
        .choices(['id', 'email'])
        .makeOptionMandatory(),
    )
    .option('--name <name>', 'of the import; the name of the file unless given', notEmpty)
    .option('--watch', 'wait until every row was read', true)
    .option('--no-watch', 'do not wait')
    .description(
      'imports events, and shows the progress. After the file is sent, the import goes on without this command. Exits 1 if rows failed',
    )
    .action(async (file: string, options: SendingOptions) => {
      const output = terminal();
      const begun = await sendFile(api(), output, {
        name: options.name ?? basename(file),
        type: 'event',
        identifier: options.identifier,
        file: await openFile(file),
      });
      if (!options.watch) {
        output.progressDone();
        writeFields(output, { import: begun });
        return;
      }
      await watchToEnd(begun.id, context);
    });
}

/** Sets the exit code by how it ended. */
async function watchToEnd(id: number, { api, terminal, deps }: ImportContext): Promise<void> {
  const output = terminal();
  const ended = await follow(api(), output, id, deps);
  writeFields(output, { import: ended });
  if (!ENDED.has(ended.state)) deps.setInterrupted();
  else if (ended.state !== 'imported' || ended.rows_failed > 0) deps.setExitCode(1);
}

interface SendingOptions {
  readonly identifier: ImportForm['identifier'];
  readonly name?: string;
  readonly watch: boolean;
}

/** Bytes of a file stay on the disk until they are sent. @throws AppError COMMAND_FAILED if it cannot be read. */
async function openFile(file: string): Promise<Blob> {
  try {
    await access(file, constants.R_OK);
    // A pipe has no size, and is read once: into memory.
    return (await stat(file)).isFile()
      ? await openAsBlob(file)
      : await blob(createReadStream(file));
  } catch (cause) {
    throw new AppError(
      'COMMAND_FAILED',
      `${file} cannot be read (${reasonOf(cause)}); name a file that you may read`,
      { cause },
    );
  }
}

/** @throws AppError COMMAND_FAILED if the API does not take it. */
async function sendFile(api: ApiClient, output: Terminal, form: ImportForm): Promise<Import> {
  const boundary = `sluice-${randomUUID()}`;
  const { import: begun } = await resultOf(
    api.POST('/v1/imports', {
      headers: { 'Content-Type': `multipart/form-data; boundary=${boundary}` },
      body: form,
      // Not a `FormData`: `fetch` reports no progress of it.
      bodySerializer: () => ReadableStream.from(partsOf(form, boundary, output)),
      // Node's `fetch` asks for it if a body is a stream.
      duplex: 'half',
    }),
  );
  return begun;
}

/** The fields, then the file, as the API reads them. */
async function* partsOf(
  { file, ...fields }: ImportForm,
  boundary: string,
  output: Terminal,
): AsyncGenerator<Uint8Array> {
  const part = (head: string): string => `--${boundary}\r\n${FORM_DATA}; ${head}`;
  for (const [name, value] of Object.entries(fields))
    yield Buffer.from(`${part(`name="${name}"`)}\r\n\r\n${value}\r\n`);
  yield Buffer.from(
    `${part('name="file"; filename="events.csv"')}\r\nContent-Type: text/csv\r\n\r\n`,
  );
  let done = 0;
  for await (const chunk of file.stream()) {
    yield chunk;
    done += chunk.length;
    const counted = { progress: 'sending the file', unit: 'bytes', done, all: file.size };
    output.progress(`sending the file: ${Math.floor((100 * done) / file.size)} %`, counted);
  }
  yield Buffer.from(`\r\n--${boundary}--\r\n`);
}

/** @returns the import at its end, or as it was when the signal came. */
async function follow(
  api: ApiClient,
  output: Terminal,
  id: number,
  { pause, signal }: ImportContext['deps'],
): Promise<Import> {
  for (;;) {
    const { import: found } = await resultOf(
      api.GET('/v1/imports/{import_id}', { params: { path: { import_id: id } } }),
    );
    output.progress(
      `import ${id}: ${found.percent} %, ${found.rows_read} rows read, ${found.state}`,
      {
        progress: `import ${id}`,
        unit: 'percent',
        done: found.percent,
        all: 100,
        rows_read: found.rows_read,
      },
    );
    if (ENDED.has(found.state) || signal.aborted) {
      output.progressDone();
      return found;
    }
    await pause(POLL_INTERVAL_MS);
  }
}
