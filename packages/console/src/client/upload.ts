/** Sends a form with a file. By `XMLHttpRequest`, since `fetch` does not report its progress. */
import type { PathOf } from './operations.ts';
import { noteSignedOut, RequestFailed } from './request.ts';

/**
 * @param onProgress - called with the part that is sent, from 0 to 1.
 * @throws RequestFailed if the API refuses or does not answer.
 */
export async function upload(
  path: PathOf<'post'>,
  {
    body,
    workspaceId,
    onProgress,
  }: {
    readonly body: FormData;
    readonly workspaceId: number;
    readonly onProgress: (share: number) => void;
  },
): Promise<void> {
  const call = new XMLHttpRequest();
  call.open('POST', path);
  call.setRequestHeader('x-sluice-workspace', String(workspaceId));
  call.upload.addEventListener('progress', ({ loaded, total }) => onProgress(loaded / total));
  const ended = new Promise<void>((resolve) =>
    call.addEventListener('loadend', () => resolve(), { once: true }),
  );
  call.send(body);
  await ended;
  if (call.status >= 200 && call.status < 300) return;
  if (call.status === 401) noteSignedOut();
  let answer: { readonly code?: string; readonly detail?: string } = {};
  try {
    answer = JSON.parse(call.responseText) as typeof answer;
  } catch {
    // No answer, or one of a proxy.
  }
  const none = 'The API does not answer.';
  const message = answer.detail ?? (call.status === 0 ? none : `The API answered ${call.status}.`);
  throw new RequestFailed(message, { status: call.status, code: answer.code ?? 'unknown' });
}
