/** Calls in short form, and the reference model's state after them. */
import type { Body, Call } from '../../src/order/model/call.ts';
import { applyCall } from '../../src/order/model/model.ts';
import { EMPTY_STATE, isRelation, type State } from '../../src/order/model/model-state.ts';

export const put = (name: string, body: Body = {}): Call => ({
  api: 'v1',
  method: 'PUT',
  path: ['customers', name],
  body,
});
export const post = (...path: string[]): Call => ({ api: 'v1', method: 'POST', path, body: {} });
export const destroy = (name: string): Call => ({
  api: 'v1',
  method: 'DELETE',
  path: ['customers', name],
});
export const pipelines = (path: string, body: Body): Call => ({ api: 'pipelines', path, body });
export const entity = (body: Body): Call => ({ api: 'v2', path: 'entity', body });
export const event = (name: string, eventName: string, id?: string): Call => ({
  api: 'v1',
  method: 'POST',
  path: ['customers', name, 'events'],
  body: { name: eventName, id },
});
export const merge = (primary: string, secondary: string): Call => ({
  api: 'v1',
  method: 'POST',
  path: ['merge_customers'],
  body: { primary: { id: primary }, secondary: { id: secondary } },
});
export const device = (name: string, v: string): Call => ({
  api: 'v1',
  method: 'PUT',
  path: ['customers', name, 'devices'],
  body: { device: { id: 't', platform: 'ios', attributes: { v } } },
});
export const metric = (deliveryId: string, recipient: string): Call => ({
  api: 'v1',
  method: 'POST',
  path: ['metrics'],
  body: { delivery_id: deliveryId, metric: 'delivered', recipient },
});
export const unsubscribe = (deliveryId: string): Call => ({
  api: 'v1',
  method: 'POST',
  path: ['unsubscribe', deliveryId],
  body: { unsubscribe: true },
});
export const relate = (name: string, role: number): Call =>
  entity({
    type: 'person',
    action: 'add_relationships',
    identifiers: { id: name },
    svc_relationships: [
      { identifiers: { object_type_id: '1', object_id: 'g' }, relationship_attributes: { role } },
    ],
  });

export const after = (...calls: readonly Call[]): State => calls.reduce(applyCall, EMPTY_STATE);

const people = ({ people: all }: State) =>
  all.map(({ names, values, events }) => ({
    names: names.join(' '),
    values: Object.fromEntries(
      Object.entries(values)
        .filter(([, { value }]) => value !== null)
        .map(([name, { value }]) => [name, value]),
    ),
    events: events.flatMap((each) => (isRelation(each) ? [] : [each.name])).join(' '),
  }));
/** People in short, sorted by name: names, values that are set, events. */
export const sortedPeople = (...calls: readonly Call[]) =>
  people(after(...calls)).toSorted((one, other) => (one.names < other.names ? -1 : 1));
export const person = (names: string, values: object = {}, events = '') => ({
  names,
  values,
  events,
});
