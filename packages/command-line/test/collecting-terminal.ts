import type { OutputFormat, Terminal } from '../src/output/terminal.ts';

/** Keeps the output of a command. */
export function collectingTerminal(
  format: OutputFormat = 'json',
  more: Partial<Terminal> = {},
): Terminal & { readonly lines: string[]; notes: string[] } {
  const lines: string[] = [];
  const notes: string[] = [];
  return {
    lines,
    notes,
    format,
    columns: undefined,
    width: undefined,
    hasColor: false,
    now: () => 0,
    line: (text) => void lines.push(text),
    note: (text) => void notes.push(text),
    progress: (text) => void notes.push(text),
    progressDone: () => {},
    clear: () => {},
    ...more,
  };
}
