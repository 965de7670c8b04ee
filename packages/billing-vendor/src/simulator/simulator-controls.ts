/** `/simulator/…`: requests of tests and people beyond the payment provider's API. */
import { z } from 'zod';
import type { Answer } from './engine/simulator-answers.ts';
import type { EventTreatment } from './engine/simulator-events.ts';
import { FAULT_KINDS, type FaultPlan } from './engine/simulator-faults.ts';
import { payInvoice } from './objects/simulator-invoices.ts';
import { settleLatePayments } from './objects/simulator-late-payments.ts';
import { renewSubscriptions } from './objects/simulator-renewals.ts';
import { ProviderRefusal } from './engine/simulator-request.ts';
import { decideDispute, disputeCharge } from './objects/simulator-reversals.ts';
import type { SimulatorState, ProviderObject } from './engine/simulator-state.ts';

export interface SimulatorControls {
  readonly state: SimulatorState;
  readonly faults: FaultPlan;
  readonly treatment: EventTreatment;
}

const fault = z.strictObject({
  kind: z.enum(FAULT_KINDS),
  method: z.string().optional(),
  path: z.string().optional(),
  count: z.int().min(1).default(1),
  delay_ms: z.int().min(0).optional(),
});
const clock = z.strictObject({ advance_ms: z.int().min(0) });
const dispute = z.strictObject({
  charge: z.string(),
  decided: z.enum(['lost', 'won']).optional(),
});
const events = z.strictObject({
  hold: z.boolean().optional(),
  duplicates: z.int().min(0).max(10).optional(),
  delay_ms_max: z.int().min(0).optional(),
});

export function answerControl(
  controls: SimulatorControls,
  method: string,
  path: string,
  text: string,
): Answer {
  const { state, faults, treatment } = controls;
  const read = <Schema extends z.ZodType>(schema: Schema): z.infer<Schema> => {
    try {
      return schema.parse(JSON.parse(text));
    } catch {
      throw new ProviderRefusal(
        400,
        'invalid_request_error',
        'The body is not JSON with the fields of this call.',
      );
    }
  };
  switch (`${method} ${path}`) {
    case 'GET /readyz':
      return ok({ status: 'ready' });
    case 'GET /simulator/charges':
      return ok({ charges: listCharges(state) });
    case 'POST /simulator/faults': {
      const { delay_ms: delayMs, method: of, path: part, ...rest } = read(fault);
      faults.add({
        ...rest,
        ...(of !== undefined && { method: of }),
        ...(part !== undefined && { path: part }),
        ...(delayMs !== undefined && { delayMs }),
      });
      return ok({});
    }
    case 'DELETE /simulator/faults':
      faults.clear();
      return ok({});
    case 'POST /simulator/clock':
      state.advanceClock(read(clock).advance_ms);
      settleLatePayments(state);
      renewSubscriptions(state);
      return ok({ now: new Date(state.now()).toISOString() });
    case 'POST /simulator/events': {
      const given = read(events);
      treatment.isHeld = given.hold ?? treatment.isHeld;
      treatment.duplicateCount = given.duplicates ?? treatment.duplicateCount;
      treatment.delayMsMax = given.delay_ms_max ?? treatment.delayMsMax;
      return ok({});
    }
    case 'POST /simulator/disputes': {
      const given = read(dispute);
      const made = disputeCharge(state, given.charge);
      return ok(given.decided === undefined ? made : decideDispute(state, made.id, given.decided));
    }
    case 'POST /simulator/dunning':
      return ok({ collected: collectEverything(state) });
    default:
      throw new ProviderRefusal(404, 'invalid_request_error', `The simulator has no ${path}.`);
  }
}

const ok = (body: Record<string, unknown>): Answer => ({ status: 200, body });

export interface RecordedCharge {
  readonly id: string;
  readonly amount: number;
  readonly currency: string;
  /** `pending`: a bank's, which may still fail. */
  readonly status: 'succeeded' | 'failed' | 'pending';
  readonly customer: string;
  readonly invoice: string | null;
  /** Of the purchase that it was made for. */
  readonly runId: string | null;
}

/** Every attempt to take money, oldest first. */
export function listCharges(state: SimulatorState): RecordedCharge[] {
  return state.list('charge').map((charge) => ({
    id: charge.id,
    amount: Number(charge['amount']),
    currency: String(charge['currency']),
    status: charge['status'] as RecordedCharge['status'],
    customer: String(charge['customer']),
    invoice: charge['invoice'] as string | null,
    runId: (charge['metadata'] as Record<string, string>)['run_id'] ?? null,
  }));
}

/** Tries to collect every open invoice, as a payment provider's automatic collection could. */
export function collectEverything(state: SimulatorState): string[] {
  return state
    .list('invoice')
    .filter((invoice) => invoice['status'] === 'open')
    .flatMap((invoice: ProviderObject) => {
      try {
        return [payInvoice(state, invoice, { isOnSession: false }).id];
      } catch {
        return [];
      }
    });
}
