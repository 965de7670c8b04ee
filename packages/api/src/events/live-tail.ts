/**
 * `GET /v1/stream`: a live tail of incoming calls and reported events, as server-sent events.
 *
 * A view of the present: no line is kept for a reader. A reader that is too slow loses lines, and gets their number
 * (`dropped`). A reader that takes no bytes for a minute is cut, also after its tail has ended, so that a reader that
 * vanished costs a bounded buffer, and a place among the tails of its workspace, for a bounded time. A tail ends within
 * a second after its key ends.
 */
import type { Database } from '@sluice/database/connection/connection';
import type { OutgoingHttpHeaders } from 'node:http';
import type { TailFilter, TailLine } from '@sluice/domain/operations/tail';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { INTEGER_MAX } from '@sluice/domain/value-rules/number-rule';
import { isAbsent } from '@sluice/domain/value-rules/verdict';
import { z } from 'zod';
import { environmentOf, isCallerInForce } from '../auth/authenticate.ts';
import { sendProblem } from '../http/error-handling.ts';
import { badRequest, commonFailures, identifierText, serverSentEvents } from '../http/fields.ts';
import type { ApiServer } from '../http/api-server.ts';
import { integerInQuery } from '../http/text-value.ts';
import type { OpenTail, TailReader } from './tail-hub.ts';
import type { TailPlaces } from './tail-places.ts';

export interface LiveTailEffects {
  readonly database: Database;
  /** Begins to read; rejects if the fleet cannot be heard. */
  readonly openTail: (
    environmentId: number,
    filter: TailFilter,
    onLines: TailReader,
  ) => Promise<OpenTail>;
  readonly tailPlaces: Pick<TailPlaces, 'take' | 'release'>;
  /** A tail ends after so long; its reader comes again. */
  readonly tailDurationMsMax: number;
  readonly monotonicNow: () => number;
}

const FILTER_LENGTH_MAX = 500;
/** Proxies cut connections that are silent for a minute or less. */
const HEARTBEAT_MS = 15_000;
/** As long as the key of any other call is remembered (`authenticate.ts`). */
const KEY_LOOK_MS = 1_000;
/** Bytes that may wait in memory for a slow reader, besides the kernel's own buffers. */
const WAITING_SIZE_BYTES_MAX = 256 * 1024;
const STUCK_MS_MAX = 60_000;

export function registerLiveTail(app: ApiServer, effects: LiveTailEffects): void {
  const { openTail, tailPlaces } = effects;
  const open = new Set<TailResponse>();
  // Open tails would hold up the stop for as long as they are read.
  app.addHook('preClose', async () => {
    for (const response of open) response.end();
  });

  app.get(
    '/v1/stream',
    {
      // HEAD would stay open as long as a GET without showing any line.
      exposeHeadRoute: false,
      schema: {
        tags: ['events'],
        summary: 'A live tail of calls and delivery attempts',
        description:
          'Server-sent events, each with one JSON object. `received` is an accepted operation. `refused` is a call, or a ' +
          'part of it, that was refused or corrected. `reported` is a delivery attempt. `dropped` has the `count` of lines ' +
          'that were lost because the tail was too slow; it is null after `Last-Event-ID`, because lines are not kept. ' +
          'Lines of one process are in order. The filters match exactly, emails in any letter case and `source` by its beginning.',
        querystring: z.object({
          person: identifierText(FILTER_LENGTH_MAX)
            .optional()
            .meta({ description: 'Any identifier of a person, as calls and reports name them.' }),
          name: identifierText(FILTER_LENGTH_MAX)
            .optional()
            .meta({ description: 'An event’s name, or the type of a report.' }),
          outcome: z
            .enum([
              'accepted',
              'mended',
              'refused',
              'rate_limited',
              'overloaded',
              'delivered',
              'retrying',
              'abandoned',
            ])
            .optional(),
          source: identifierText(FILTER_LENGTH_MAX).optional().meta({
            description: 'A kind of call: `pipelines.track`, or `pipelines` for all of its kind.',
          }),
          webhook_id: integerInQuery(1, INTEGER_MAX)
            .optional()
            .meta({ description: 'Only delivery attempts of this reporting webhook.' }),
        }),
        response: {
          200: {
            description: 'Goes on until the reader ends it, for an hour by default.',
            content: serverSentEvents,
          },
          ...badRequest,
          ...commonFailures,
        },
      },
    },
    async (request, reply) => {
      const environmentId = environmentOf(request);
      const { person, name, outcome, source, webhook_id: webhookId } = request.query;
      if (!(await tailPlaces.take(environmentId)))
        return refuse(
          request,
          reply,
          'the limit of open live tails of this installation or workspace is reached; close one, or try again later',
        );
      const response = new TailResponse(request, reply, effects);
      const filter = {
        ...(!isAbsent(person) && { person }),
        ...(!isAbsent(name) && { name }),
        ...(outcome !== undefined && { outcome }),
        ...(!isAbsent(source) && { source }),
        ...(webhookId !== undefined && { webhookId: String(webhookId) }),
      };
      const tail = await openTail(environmentId, filter, response.write).catch((error: unknown) => {
        request.log.warn(
          { error },
          'a live tail could not be opened; the client was asked to try again',
        );
        return undefined;
      });
      if (!tail) {
        tailPlaces.release(environmentId);
        return refuse(
          request,
          reply,
          'the live tail cannot reach the other processes; try again later',
        );
      }
      open.add(response);
      response.start(() => {
        tail.close();
        open.delete(response);
        tailPlaces.release(environmentId);
      });
      return reply;
    },
  );
}

function refuse(request: FastifyRequest, reply: FastifyReply, message: string) {
  return sendProblem(request, reply, { code: 'unavailable', message });
}

/** One reader's answer. Lines before its start are dropped. */
class TailResponse {
  readonly #request: FastifyRequest;
  readonly #reply: FastifyReply;
  readonly #effects: LiveTailEffects;
  #isStarted = false;
  #droppedCount = 0;
  #lastId = 0;
  #takenAtMs = 0;
  #isLooking = false;

  constructor(request: FastifyRequest, reply: FastifyReply, effects: LiveTailEffects) {
    this.#request = request;
    this.#reply = reply;
    this.#effects = effects;
  }

  start(onEnd: () => void): void {
    const { raw } = this.#reply;
    const { monotonicNow, tailDurationMsMax } = this.#effects;
    const headers = this.#reply.getHeaders() as OutgoingHttpHeaders;
    this.#reply.hijack();
    const heartbeat = setInterval(() => this.#beat(), HEARTBEAT_MS).unref();
    const looks = setInterval(() => void this.#lookAtKey(), KEY_LOOK_MS).unref();
    const lifetime = setTimeout(() => this.end(), tailDurationMsMax).unref();
    raw.on('drain', () => void (this.#takenAtMs = monotonicNow()));
    raw.on('close', () => {
      clearInterval(heartbeat);
      clearInterval(looks);
      clearTimeout(lifetime);
      onEnd();
    });
    raw.on('error', () => raw.destroy());
    // Gone while the tail was being opened: there will be no other 'close'.
    if (raw.destroyed) {
      raw.emit('close');
      return;
    }
    raw.writeHead(200, {
      ...headers,
      'content-type': 'text/event-stream; charset=utf-8',
      // nginx would gather lines otherwise.
      'x-accel-buffering': 'no',
    });
    this.#takenAtMs = monotonicNow();
    this.#isStarted = true;
    // At once, so that the reader knows that it is connected.
    raw.write(': listening\n\n');
    if (this.#request.headers['last-event-id'] !== undefined)
      this.#writeEvent('dropped', { count: null });
  }

  readonly write = (lines: readonly TailLine[], droppedCount: number): void => {
    this.#droppedCount += droppedCount;
    for (const line of lines) {
      if (!this.#hasCapacity()) {
        this.#droppedCount++;
        continue;
      }
      this.#reportDropped();
      this.#writeEvent(line.kind, line);
    }
    if (this.#hasCapacity()) this.#reportDropped();
  };

  end(): void {
    const { raw } = this.#reply;
    if (raw.writableEnded) return;
    // Its reader has a minute for the rest.
    this.#takenAtMs = this.#effects.monotonicNow();
    raw.end();
  }

  #hasCapacity(): boolean {
    const { raw } = this.#reply;
    return this.#isStarted && !raw.writableEnded && raw.writableLength < WAITING_SIZE_BYTES_MAX;
  }

  #reportDropped(): void {
    if (this.#droppedCount === 0) return;
    const count = this.#droppedCount;
    this.#droppedCount = 0;
    this.#writeEvent('dropped', { count });
  }

  #writeEvent(event: string, body: object): void {
    const id = `${this.#request.id}-${++this.#lastId}`;
    this.#reply.raw.write(`event: ${event}\nid: ${id}\ndata: ${JSON.stringify(body)}\n\n`);
  }

  #beat(): void {
    const { raw } = this.#reply;
    const isWaiting = raw.writableNeedDrain || raw.writableEnded;
    if (isWaiting && this.#effects.monotonicNow() - this.#takenAtMs > STUCK_MS_MAX) {
      raw.destroy();
      return;
    }
    if (!this.#hasCapacity()) return;
    this.#reportDropped();
    raw.write(': here\n\n');
  }

  /** One question at a time. While Postgres is away the tail goes on. */
  async #lookAtKey(): Promise<void> {
    if (this.#isLooking || this.#reply.raw.writableEnded) return;
    this.#isLooking = true;
    const isInForce = await isCallerInForce(this.#request, this.#effects.database).catch(
      () => true,
    );
    this.#isLooking = false;
    if (!isInForce) this.end();
  }
}
