/**
 * `npm run assembly`: compiles intake's AssemblyScript. The result is committed beside its source, so that only a
 * change of it needs the compiler. `--check` compares it with its source.
 */
import { readFile, writeFile } from 'node:fs/promises';
import { fileURLToPath } from 'node:url';
import asc from 'assemblyscript/asc';

const FOLDER = fileURLToPath(new URL('../packages/intake/assembly', import.meta.url));
const TARGET = `${FOLDER}/fast-track.wasm`;

const compiled: { bytes?: Uint8Array } = {};
const { error } = await asc.main(
  [
    'fast-track.ts',
    ...['--baseDir', FOLDER, '--outFile', 'fast-track.wasm'],
    // Optimised for speed, without assertions and without a garbage collector: the code does not allocate.
    ...['--optimizeLevel', '3', '--runtime', 'stub', '--noAssert', '--enable', 'simd'],
  ],
  {
    stderr: process.stderr,
    writeFile: (_, contents) => void (compiled.bytes = contents as Uint8Array),
  },
);
if (error !== null || compiled.bytes === undefined) {
  console.error(error?.message ?? 'the compiler wrote nothing');
  process.exitCode = 1;
} else if (process.argv.includes('--check')) {
  if (!(await readFile(TARGET)).equals(compiled.bytes)) {
    console.error('fast-track.wasm is not what fast-track.ts says: run "npm run assembly"');
    process.exitCode = 1;
  }
} else {
  await writeFile(TARGET, compiled.bytes);
  console.log('packages/intake/assembly/fast-track.wasm is up to date');
}
