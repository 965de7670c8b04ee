/**
 * A worker that reads long JSON, so that the page answers meanwhile. It is a script of its own:
 * `scripts/build-console.mjs` builds it beside the pages.
 */
import type { ReadJson } from './read-json.ts';

addEventListener('message', ({ data: text }: MessageEvent<string>) => {
  postMessage(read(text));
});

function read(text: string): ReadJson {
  try {
    const value: unknown = JSON.parse(text);
    // A value that is nested too deeply to be written is shown as it came.
    JSON.stringify(value, null, 2);
    return { value };
  } catch (error) {
    return { problem: (error as Error).message };
  }
}
