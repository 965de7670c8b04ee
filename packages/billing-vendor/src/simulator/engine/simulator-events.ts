/**
 * Events of the simulated payment provider: made with every change, sent signed to one endpoint, tried again
 * until it answers 2xx, in no promised order. Tests may hold them back, repeat and delay them.
 */
import { wireOf, type SimulatorState, type ProviderObject } from './simulator-state.ts';

/** Notes that something happened. It is sent by the pump below, after the request is answered. */
export function emit(state: SimulatorState, type: string, object: ProviderObject): void {
  state.save('event', {
    id: state.newId('evt'),
    object: 'event',
    api_version: '2026-10-28.endive',
    created: state.nowSeconds(),
    livemode: false,
    type,
    data: { object: structuredClone(object) },
    simulated_deliveries: 0,
    simulated_attempts: 0,
    simulated_due_ms: state.now(),
  });
}

/** How events are treated; a test changes it at any time. */
export interface EventTreatment {
  /** True: events are not sent. */
  isHeld: boolean;
  /** How many more times each is sent. */
  duplicateCount: number;
  /** Each waits a random time up to this, so that they overtake one another. */
  delayMsMax: number;
}

export interface EventPumpOptions {
  readonly state: SimulatorState;
  readonly endpoint: string | undefined;
  readonly sign: (payload: string) => string;
  /** 0 ≤ x < 1. */
  readonly random: () => number;
  readonly treatment: EventTreatment;
}

const PUMP_INTERVAL_MS = 20;
const SEND_TIMEOUT_MS = 10_000;
const RETRY_MS_MAX = 30_000;
/** Sent at the same time. */
const BATCH_SIZE = 20;

export interface EventPump {
  stop(): Promise<void>;
}

export function startEventPump(options: EventPumpOptions): EventPump {
  const { state, endpoint, treatment } = options;
  const inFlight = new Set<string>();
  const delayed = new Map<string, number>();
  let isStopped = false;
  let running: Promise<unknown> = Promise.resolve();

  const send = async (event: ProviderObject): Promise<void> => {
    const payload = JSON.stringify(wireOf(event));
    const answer = await fetch(endpoint as string, {
      method: 'POST',
      headers: { 'content-type': 'application/json', 'stripe-signature': options.sign(payload) },
      body: payload,
      signal: AbortSignal.timeout(SEND_TIMEOUT_MS),
    }).then(
      async (response) => {
        await response.arrayBuffer();
        return response.ok;
      },
      () => false,
    );
    const current = state.get('event', event.id);
    if (!current) return;
    const deliveries = Number(current['simulated_deliveries']) + (answer ? 1 : 0);
    const attempts = Number(current['simulated_attempts']) + 1;
    const backoffMs = answer ? 0 : Math.min(100 * 2 ** attempts, RETRY_MS_MAX);
    if (deliveries > treatment.duplicateCount) state.delete('event', event.id);
    else
      state.save('event', {
        ...current,
        simulated_deliveries: deliveries,
        simulated_attempts: attempts,
        simulated_due_ms: state.now() + backoffMs,
      });
  };

  const pump = async (): Promise<void> => {
    if (treatment.isHeld || endpoint === undefined) return;
    const due = state
      .list('event')
      .filter((event) => {
        if (inFlight.has(event.id)) return false;
        let delayMs = delayed.get(event.id);
        if (delayMs === undefined) {
          delayMs = options.random() * treatment.delayMsMax;
          delayed.set(event.id, delayMs);
        }
        return Number(event['simulated_due_ms']) + delayMs <= state.now();
      })
      .slice(0, BATCH_SIZE);
    await Promise.all(
      due.map(async (event) => {
        inFlight.add(event.id);
        await send(event).finally(() => inFlight.delete(event.id));
        if (!state.get('event', event.id)) delayed.delete(event.id);
      }),
    );
  };

  let timer: NodeJS.Timeout | undefined;
  let isLooping = false;
  const loopSoon = (): void => {
    isLooping = !isStopped;
    if (isLooping) timer = setTimeout(loop, PUMP_INTERVAL_MS);
  };
  const loop = (): void => {
    // Mostly no event waits: a look each 20 ms was half of the CPU that an idle `npm start` used.
    isLooping = endpoint !== undefined && state.has('event');
    if (isLooping) running = pump().finally(loopSoon);
  };
  state.onEventSaved = () => {
    if (!isLooping) loopSoon();
  };
  loop();
  return {
    async stop() {
      isStopped = true;
      clearTimeout(timer);
      await running;
    },
  };
}
