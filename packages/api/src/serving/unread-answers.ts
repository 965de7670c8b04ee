/**
 * Bounds the memory of answers that their callers have not read.
 *
 * A list has up to some megabytes, and waits in memory until its caller takes it. A key that called ten times a second and
 * did not read held a gigabyte. So the unread answers of a workspace, or of an account, have a share of a bound; beyond it
 * a read is refused with 429. Four such callers together leave a part for callers whose answers are read. A caller that
 * takes a byte now and then is cut once its answer is overdue.
 *
 * Small answers and files of this process (`static-file.ts`) are not counted: they are in the kernel's buffers, or shared.
 */
import { newcomerPercentOf } from '@sluice/domain/values/fair-share';
import { SharedCapacity } from '@sluice/platform/process/shared-capacity';
import type { FastifyRequest } from 'fastify';
import type { ApiServer } from '../http/api-server.ts';
import { isRead } from '../http/call-kind.ts';
import { RequestRefused } from '../http/request-validation.ts';

export interface UnreadAnswersOptions {
  /** Of all callers together. */
  readonly sizeBytesMax: number;
  /** Time in which an answer of any size may be read. */
  readonly readMsMin: number;
  /** Of the slowest connection that may read an answer to its end. */
  readonly sizeBytesASecondMin: number;
}

export const UNREAD_ANSWERS: UnreadAnswersOptions = {
  sizeBytesMax: 64 * 1_048_576,
  readMsMin: 60_000,
  sizeBytesASecondMin: 8_192,
};

const SHARE_PERCENT = 25;
/** A smaller answer is in the kernel's buffers at once. */
const COUNTED_SIZE_BYTES_MIN = 16_384;
/** Held of an answer that is read piece by piece, such as an export. */
const STREAM_SIZE_BYTES = 65_536;
const RETRY_AFTER_SECONDS = 10;

/** Before routes are registered. */
export function boundUnreadAnswers(
  app: ApiServer,
  { sizeBytesMax, readMsMin, sizeBytesASecondMin }: UnreadAnswersOptions,
): void {
  const unread = new SharedCapacity({
    capacity: sizeBytesMax,
    sharePercent: SHARE_PERCENT,
    newcomerPercent: newcomerPercentOf(SHARE_PERCENT),
    // Like a workspace beside others: the capacity that it leaves free is for callers without one.
    isAlone: () => false,
    monotonicNow: () => performance.now(),
  });
  app.addHook('onSend', (request, reply, payload, done) => {
    const sizeBytes = sizeOf(payload);
    if (sizeBytes < COUNTED_SIZE_BYTES_MIN) return done();
    // Its caller has hung up: there will be no event for its release.
    if (reply.raw.destroyed || request.raw.socket.destroyed) return done();
    const owner = ownerOf(request);
    if (!unread.take(owner, sizeBytes)) {
      if (isRead(request)) {
        if (isStream(payload)) payload.destroy();
        const message =
          'earlier answers have not been read, and take all memory for them; read them, then send the call again';
        return done(
          new RequestRefused({
            code: 'rate_limited',
            message,
            retryAfterSeconds: RETRY_AFTER_SECONDS,
          }),
        );
      }
      // The change was made, so its caller gets the answer.
      unread.hold(owner, sizeBytes);
    }
    const { raw } = reply;
    const readMsMax = readMsMin + (1_000 * sizeBytes) / sizeBytesASecondMin;
    let overdue: NodeJS.Timeout | undefined;
    const beginTime = (): void => {
      overdue = setTimeout(() => raw.socket?.destroy(), readMsMax).unref();
    };
    // It may wait for an earlier answer of its connection, such as a stream without an end. Only then the connection is its own.
    if (!isStream(payload))
      if (raw.socket === null) raw.once('socket', beginTime);
      else beginTime();
    let isReleased = false;
    const release = (): void => {
      if (isReleased) return;
      isReleased = true;
      clearTimeout(overdue);
      unread.release(owner, sizeBytes);
    };
    raw.once('finish', release).once('close', release);
    return done();
  });
}

function sizeOf(payload: unknown): number {
  if (typeof payload === 'string') return Buffer.byteLength(payload);
  return isStream(payload) ? STREAM_SIZE_BYTES : 0;
}

const isStream = (payload: unknown): payload is { destroy(): void } =>
  typeof payload === 'object' &&
  payload !== null &&
  'pipe' in payload &&
  'destroy' in payload &&
  typeof payload.destroy === 'function';

/** A workspace, or an account as a negative number; 0 for callers without credentials. */
const ownerOf = ({ caller, accountCaller }: FastifyRequest): number =>
  caller?.environmentId ?? (accountCaller ? -accountCaller.accountId : 0);
