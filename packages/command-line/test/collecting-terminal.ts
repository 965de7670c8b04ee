import type { Terminal } from '../src/terminal.ts';

/** Keeps what a command writes. */
export function collectingTerminal(): Terminal & { readonly lines: string[]; notes: string[] } {
  const lines: string[] = [];
  const notes: string[] = [];
  return {
    lines,
    notes,
    isJson: true,
    hasColor: false,
    line: (text) => void lines.push(text),
    note: (text) => void notes.push(text),
    progress: (text) => void notes.push(text),
    progressDone: () => {},
  };
}
