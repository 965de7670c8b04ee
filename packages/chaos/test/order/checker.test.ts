/** The checker on histories made by hand: the accepted orders, and the report of an impossible history. */
import { expect, test } from 'vitest';
import { NEVER, type AnsweredCall, type Body, type Call } from '../../src/order/model/call.ts';
import { possibleStates } from '../../src/order/checker.ts';
import { findDifferences, type FoundPerson } from '../../src/order/compare.ts';
import { relate } from '../support/model-calls.ts';

const put = (name: string, body: Body = {}): Call => ({
  api: 'v1',
  method: 'PUT',
  path: ['customers', name],
  body,
});
const destroy = (name: string): Call => ({
  api: 'v1',
  method: 'DELETE',
  path: ['customers', name],
});
const track = (userId: string, event: string): Call => ({
  api: 'pipelines',
  path: 'track',
  body: { userId, event },
});
const sent = (call: Call, sentAt: number, answeredAt: number): AnsweredCall => ({
  call,
  sender: sentAt,
  intake: 0,
  sentAt,
  answeredAt,
});
const someone: FoundPerson = {
  id: 'p',
  email: null,
  phone: null,
  svc: null,
  attributes: {},
  unsubscribed: false,
  devices: {},
  relationships: {},
  events: [],
  relations: [],
  changes: undefined,
};

function differences(
  history: readonly AnsweredCall[],
  ...found: readonly FoundPerson[]
): readonly string[] {
  const verdict = possibleStates(history);
  if (verdict.outcome === 'too many') throw new Error('the history is not decided');
  return findDifferences(verdict.states, found, history).map(({ words }) => words);
}

test('a call sent after another’s answer comes after it', () => {
  const history = [sent(put('p', { a: 1 }), 1, 2), sent(put('p', { a: 2 }), 3, 4)];
  expect(differences(history, { ...someone, attributes: { a: '2' } })).toEqual([]);
  expect(differences(history, { ...someone, attributes: { a: '1' } })).toEqual([
    'attribute a of p is 1, 2 is expected',
  ]);
});

test('a person is found under the svc_id, also with no other identifier', () => {
  const learned = [
    sent(put('p', { a: 1 }), 1, 2),
    sent({ api: 'learn', id: 'p', svcId: 'svc_a1' }, 3, 4),
  ];
  const found = { ...someone, attributes: { a: '1' } };
  expect(differences(learned, { ...found, svc: 'a1' })).toEqual([]);
  expect(differences(learned, { ...found, svc: 'a2' })).toEqual(['svc of p is a2, a1 is expected']);
  const nameless = [...learned, sent(put('svc_a1', { id: null }), 5, 6)];
  expect(differences(nameless, { ...found, id: null, svc: 'a1' })).toEqual([]);
  expect(differences(nameless)).toEqual(['a1 is expected, but is missing']);
});

test('calls in flight together may take either order', () => {
  const history = [sent(put('p', { a: 1 }), 1, 3), sent(put('p', { a: 2 }), 2, 4)];
  for (const a of ['1', '2'])
    expect(differences(history, { ...someone, attributes: { a } })).toEqual([]);
  expect(differences(history, { ...someone, attributes: { a: '3' } })).not.toEqual([]);
});

test('calls in flight together have one order for all their effects', () => {
  const history = [sent(put('p', { a: 1, b: 1 }), 1, 3), sent(put('p', { a: 2, b: 2 }), 2, 4)];
  expect(differences(history, { ...someone, attributes: { a: '2', b: '2' } })).toEqual([]);
  expect(differences(history, { ...someone, attributes: { a: '1', b: '2' } })).toHaveLength(1);
});

test('a call that is in flight for long may take effect anywhere meanwhile', () => {
  const history = [
    sent(put('p', { a: 1 }), 1, 2),
    sent(destroy('p'), 3, 8),
    sent(put('p', { b: 2 }), 4, 5),
    sent(put('p', { c: 3 }), 6, 7),
  ];
  expect(differences(history)).toEqual([]);
  expect(differences(history, { ...someone, attributes: { c: '3' } })).toEqual([]);
  expect(differences(history, { ...someone, attributes: { b: '2', c: '3' } })).toEqual([]);
  expect(differences(history, { ...someone, attributes: { a: '1', b: '2', c: '3' } })).not.toEqual(
    [],
  );
});

test('a call without an answer may have taken effect at any time after it was sent, or never', () => {
  const history = [
    sent(put('p', { a: 1 }), 1, 2),
    sent(put('p', { a: 2 }), 3, NEVER),
    sent(put('p', { a: 3 }), 4, 5),
  ];
  for (const a of ['2', '3'])
    expect(differences(history, { ...someone, attributes: { a } })).toEqual([]);
  expect(differences(history, { ...someone, attributes: { a: '1' } })).not.toEqual([]);
});

test('a call without an answer has its effects whole, or not at all', () => {
  const history = [
    sent(put('p', { a: 1, b: 1 }), 1, 2),
    sent(put('p', { a: 2, b: 2 }), 3, NEVER),
    sent(put('p', { b: 3 }), 4, 5),
  ];
  for (const [a, b] of [
    ['1', '3'],
    ['2', '3'],
    ['2', '2'],
  ] as const)
    expect(differences(history, { ...someone, attributes: { a, b } })).toEqual([]);
  expect(differences(history, { ...someone, attributes: { a: '1', b: '2' } })).toHaveLength(1);
});

test('a line of a stream comes after the line before it', () => {
  const first = sent(put('p', { a: 1 }), 1, 2);
  const second = { ...sent(put('p', { a: 2 }), 1, 2), follows: first };
  expect(differences([first, second], { ...someone, attributes: { a: '2' } })).toEqual([]);
  expect(differences([first, second], { ...someone, attributes: { a: '1' } })).not.toEqual([]);
  const lost = { ...first, answeredAt: NEVER };
  const after = { ...second, answeredAt: NEVER, follows: lost };
  const lines = [lost, after, sent(put('q'), 3, 4)];
  const q = { ...someone, id: 'q' };
  for (const a of ['1', '2'])
    expect(differences(lines, { ...someone, attributes: { a } }, q)).toEqual([]);
  expect(differences(lines, q)).toEqual([]);
});

test('two calls in flight meet through a third that names both people', () => {
  const merge: Call = {
    api: 'v1',
    method: 'POST',
    path: ['merge_customers'],
    body: { primary: { id: 'p' }, secondary: { id: 'q' } },
  };
  const history = [
    sent(put('p'), 1, 2),
    sent(put('q', { a: 1 }), 3, 4),
    sent(put('p', { a: 2 }), 5, 8),
    sent(merge, 6, 9),
    sent(put('q', { a: 3 }), 7, 10),
  ];
  const q = { ...someone, id: 'q', attributes: { a: '3' } };
  expect(differences(history, { ...someone, attributes: { a: '2' } })).toEqual([]);
  expect(differences(history, { ...someone, attributes: { a: '2' } }, q)).toEqual([]);
  expect(differences(history, { ...someone, attributes: { a: '1' } })).not.toEqual([]);
});

test('a deleted person who is back is a difference', () => {
  const history = [sent(put('p', { a: 1 }), 1, 2), sent(destroy('p'), 3, 4)];
  expect(differences(history, someone)).toEqual(['p exists, but is not expected']);
});

test('a lost event, an event of another person and events out of order are distinguished', () => {
  const history = [
    sent(track('p', 'e1'), 1, 2),
    sent(track('p', 'e2'), 3, 4),
    sent(put('q'), 5, 6),
  ];
  const [e1, e2] = ['e1', 'e2'].map((name) => ({ type: 'event', name, data: {} })) as [
    never,
    never,
  ];
  const q = { ...someone, id: 'q' };
  expect(differences(history, { ...someone, events: [e1, e2] }, q)).toEqual([]);
  expect(differences(history, { ...someone, events: [e2, e1] }, q)).toEqual([
    'e1 of p is listed after e2, and was answered before it was sent',
  ]);
  expect(differences(history, { ...someone, events: [e1] }, q)[0]).toContain(
    'event e2 of p is missing',
  );
  expect(differences(history, { ...someone, events: [e1] }, { ...q, events: [e2] })).toContain(
    'event e2 of p is at q',
  );
});

test('an entry about a relationship that is lost, too many or different is a difference', () => {
  const history = [sent(relate('p', 1), 1, 2), sent(relate('p', 2), 3, 4)];
  const found = { ...someone, relationships: { '1/g': { role: 2 } } };
  const begun = (role: number) => ({ type: 'add_relationship', name: '1/g', data: { role } });
  expect(differences(history, { ...found, relations: [begun(1)] })).toEqual([]);
  for (const relations of [[], [begun(1), begun(1)]])
    expect(differences(history, { ...found, relations })).toHaveLength(1);
  expect(differences(history, { ...found, relations: [begun(2)] })).toEqual([
    'history add_relationship 1/g {"role":1} of p is missing, 1 is expected',
    'history add_relationship 1/g {"role":2} of p is 1, but should be absent',
  ]);
});

test('either of two relationships in flight together may be the one that begins in the history', () => {
  const history = [relate('p', 1), relate('p', 2)].map((call) => sent(call, 1, 2));
  const overwritten = [...history, sent(relate('p', 3), 3, 4)];
  const found = { ...someone, relationships: { '1/g': { role: 3 } } };
  const begun = (role: number) => [{ type: 'add_relationship', name: '1/g', data: { role } }];
  for (const role of [1, 2])
    expect(differences(overwritten, { ...found, relations: begun(role) })).toEqual([]);
  expect(differences(overwritten, { ...found, relations: begun(3) })).not.toEqual([]);
});

test('a change in the activity log that does not lead to the value is a difference', () => {
  const history = [sent(put('p', { a: 1 }), 1, 2), sent(put('p', { a: 2 }), 3, 4)];
  const found = { ...someone, attributes: { a: '2' } };
  const first = { a: { from: null, to: 1 } };
  expect(differences(history, { ...found, changes: [first, { a: { from: 1, to: 2 } }] })).toEqual(
    [],
  );
  expect(differences(history, { ...found, changes: [first] })).toHaveLength(1);
});

test('too many states are reported, not left out', () => {
  const history = Array.from({ length: 6 }, (_, index) =>
    sent(put(`p${index}`, { a: 1 }), index, 10 + index),
  ).flatMap((call) => [
    call,
    { ...call, call: destroy(call.call.api === 'v1' ? String(call.call.path[1]) : '') },
  ]);
  expect(possibleStates(history, 5).outcome).toBe('too many');
});

test('a visitor’s call and a person’s call about the same thing may take either order', () => {
  const group: Call = { api: 'pipelines', path: 'group', body: { anonymousId: 'v', groupId: 'g' } };
  const removal: Call = {
    api: 'pipelines',
    path: 'track',
    body: { userId: 'p', event: 'Relationship Deleted', properties: { objectId: 'g' } },
  };
  const trait: Call = {
    api: 'pipelines',
    path: 'identify',
    body: { anonymousId: 'v', traits: { a: 1 } },
  };
  const identified = sent(put('p', { anonymous_id: 'v' }), 9, 10);
  const groups = [sent(put('p'), 1, 2), sent(group, 4, 6), sent(removal, 3, 5), identified];
  const related = {
    ...someone,
    relationships: { '1/g': {} },
    relations: [{ type: 'add_relationship', name: '1/g', data: {} }],
  };
  expect(differences(groups, someone)).toEqual([]);
  expect(differences(groups, related)).toEqual([]);
  const inOrder = [sent(put('p'), 1, 2), sent(group, 3, 4), sent(removal, 5, 6), identified];
  expect(differences(inOrder, someone)).toEqual([]);
  expect(differences(inOrder, related)).not.toEqual([]);
  const traits = [sent(trait, 2, 4), sent(put('p', { a: 2 }), 1, 3), identified];
  for (const a of ['1', '2'])
    expect(differences(traits, { ...someone, attributes: { a } })).toEqual([]);
});
