/**
 * Compiles intake's AssemblyScript with counters.
 *
 * Each block, branch and right-hand side has one at its beginning. They show the way of an input, which the compiled file of
 * the product does not. Branches of the plain parser guide badly: most inputs are declined before it is asked.
 */
import { readFile } from 'node:fs/promises';
import { fileURLToPath } from 'node:url';
import asc from 'assemblyscript/asc';
import { instrument } from './instrument.ts';

const FOLDER = fileURLToPath(new URL('../../packages/intake/assembly', import.meta.url));
/** More than there are parts; a part is the address of its counter. */
const PART_COUNT_MAX = 1_024;
const COUNTERS = `
export const counters: i32 = <i32>memory.data(${PART_COUNT_MAX});
export function reach(part: i32): void {
  const count = load<u8>(counters + part);
  if (count < 255) store<u8>(counters + part, count + 1);
}
`;

/** Neither `es2024` nor Node's types know it, and `dom` would bring a browser's globals. */
declare const WebAssembly: {
  readonly Module: new (bytes: Uint8Array) => object;
  readonly Instance: new (module: object, imports: object) => { readonly exports: unknown };
};

export interface InstrumentedAssembly {
  /** For `FastTrackParser`. */
  readonly module: object;
  /** The counters in the memory of an instance. */
  readonly countersIn: (memory: Buffer) => Uint8Array;
}

/** @throws Error if it does not compile. */
export async function compileInstrumented(): Promise<InstrumentedAssembly> {
  let partCount = 0;
  const reach = (): string => {
    if (partCount === PART_COUNT_MAX) throw new RangeError('the assembly has too many parts');
    return `reach(${partCount++})`;
  };
  const compiled: { bytes?: Uint8Array } = {};
  const { error } = await asc.main(
    [
      'fast-track.ts',
      ...['--baseDir', FOLDER, '--outFile', 'fast-track.wasm', '--optimizeLevel', '1'],
      ...['--runtime', 'stub', '--noAssert', '--enable', 'simd'],
    ],
    {
      stderr: process.stderr,
      async readFile(name) {
        if (name === 'counters.ts') return COUNTERS;
        const path = `${FOLDER}/${name}`;
        const text = await readFile(path, 'utf8').catch(() => null);
        if (text === null) return null;
        const shown = name === 'fast-track.ts' ? "export { counters } from './counters';" : '';
        return `${instrument(path, text, reach)}\nimport { reach } from './counters';\n${shown}`;
      },
      writeFile: (_, contents) => void (compiled.bytes = contents as Uint8Array),
    },
  );
  if (error !== null || compiled.bytes === undefined)
    throw new Error(`the instrumented assembly does not compile: ${error?.message}`);
  const module = new WebAssembly.Module(compiled.bytes);
  const { counters } = new WebAssembly.Instance(module, {}).exports as {
    readonly counters: { readonly value: number };
  };
  return {
    module,
    countersIn: (memory) => memory.subarray(counters.value, counters.value + partCount),
  };
}
