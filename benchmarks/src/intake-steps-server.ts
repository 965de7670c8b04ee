/**
 * Reduced intake for `intake-steps.ts`: `STEPS` sets the number of its steps, each as short as possible.
 * It has no credentials, no rules, no issues, one queue and no BullMQ. Never use it elsewhere.
 */
import { Redis } from 'ioredis';
import { App, type HttpResponse } from 'uWebSockets.js';

const steps = (process.env['STEPS'] as string).split(' ');
const readsHeads = steps.includes('heads');
const parses = steps.includes('parse');
const writes = steps.includes('stringify');

interface Caller {
  readonly res: HttpResponse;
  isAborted: boolean;
}

const FLUSH_SIZE_BYTES_MAX = 1_048_576;
const redis = new Redis(process.env['REDIS_URL'] as string);
const utf8 = new TextDecoder('utf-8', { fatal: true });
let bytes = Buffer.allocUnsafe(FLUSH_SIZE_BYTES_MAX);
let sizeBytes = 0;
let callers: Caller[] = [];
let isFlushing = false;
let authorization = '';

function readHeader(name: string, value: string): void {
  if (name.length === 13 && name === 'authorization') authorization = value;
}

function answer(answered: readonly Caller[]): void {
  for (const { res, isAborted } of answered) {
    if (isAborted) continue;
    res.cork(() => {
      res.writeHeader('Content-Type', 'application/json; charset=utf-8');
      res.end('{}\n');
    });
  }
}

/** One flush in flight, as intake has it. */
async function flush(): Promise<void> {
  while (callers.length > 0) {
    const answered = callers;
    const written = bytes.subarray(0, sizeBytes);
    callers = [];
    bytes = Buffer.allocUnsafe(FLUSH_SIZE_BYTES_MAX);
    sizeBytes = 0;
    await redis.rpush('steps', written);
    setImmediate(answer, answered);
  }
  isFlushing = false;
}

function take(body: Uint8Array): void {
  if (!parses) {
    bytes.set(body, sizeBytes);
    sizeBytes += body.length;
    return;
  }
  const call = JSON.parse(utf8.decode(body)) as Record<string, unknown>;
  if (!writes) {
    bytes.set(body, sizeBytes);
    sizeBytes += body.length;
    return;
  }
  const operation = {
    type: 'event.track',
    environmentId: 1,
    receivedAtMs: Date.now(),
    kind: 'event',
    person: { kind: 'id', value: call['userId'] },
    eventId: '01JD0000000000000000000000',
    name: call['event'],
    data: call['properties'],
    occurredAtMs: Date.parse(call['timestamp'] as string),
  };
  sizeBytes += bytes.write(JSON.stringify(operation), sizeBytes);
}

App()
  .post('/v1/track', (res, req) => {
    if (readsHeads) {
      req.forEach(readHeader);
      if (authorization === '') throw new Error('no credentials');
    }
    const caller: Caller = { res, isAborted: false };
    res.onAborted(() => void (caller.isAborted = true));
    res.onData((chunk, isLast) => {
      if (!isLast) throw new Error('the benchmark sends no body in pieces');
      take(new Uint8Array(chunk));
      callers.push(caller);
      if (isFlushing) return;
      isFlushing = true;
      setImmediate(() => void flush());
    });
  })
  .any('/*', (res) => void res.cork(() => res.writeStatus('404 Not Found').end()))
  .listen('127.0.0.1', Number(process.env['PORT']), () => undefined);
