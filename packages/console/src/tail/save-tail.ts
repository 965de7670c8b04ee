/** The lines of the live tail as a file. */
import type { TailView } from './use-tail.ts';

/** The browser downloads all lines that the page has. */
export function saveTail(tail: TailView): void {
  const text = tail
    .all()
    .map(({ number: _, ...line }) => `${JSON.stringify(line)}\n`)
    .join('');
  const url = URL.createObjectURL(new Blob([text], { type: 'application/x-ndjson' }));
  const link = document.createElement('a');
  link.href = url;
  link.download = `live-${new Date().toISOString().replaceAll(':', '-')}.ndjson`;
  link.click();
  URL.revokeObjectURL(url);
}
