/**
 * A call's meaning in steps of the reference model.
 *
 * Also the names that it contains.
 */
import type { Body, Call } from './call.ts';
import type { Name } from './model-state.ts';
import { deviceMark, relationshipMark } from './profile.ts';
import { readPipelines } from './read-pipelines.ts';
import { readTrackV1, readTrackV2 } from './read-track.ts';
import { eventOf, listOf, nameOf, namesOf, type Step } from './steps.ts';

export function stepsOf(call: Call): readonly Step[] {
  switch (call.api) {
    case 'v1':
      return readTrackV1(call);
    case 'v2':
      return itemsOf(call).flatMap(readTrackV2);
    case 'pipelines':
      return call.path === 'batch'
        ? itemsOf(call).flatMap(readPipelines)
        : readPipelines({ ...call.body, type: call.path });
    case 'stream':
      return call.lines.flatMap(call.of === 'v2' ? readTrackV2 : readPipelines);
    case 'learn':
      return [{ kind: 'learn', name: nameOf(call.id), svcId: nameOf(call.svcId) }];
    case 'import':
      return call.rows.map(({ name, person }) => ({
        ...eventOf({ names: [nameOf(person)] }, 'event', name, {}, undefined),
        isOfKnown: true,
      }));
  }
}

const itemsOf = ({ path, body }: { readonly path: string; readonly body: Body }): readonly Body[] =>
  path === 'batch' ? listOf(body['batch']) : [body];

export const EVERYONE: Name = '*';

const namesOfCalls = new WeakMap<Call, readonly Name[]>();

/** All names that a call contains, and its event ids. A deleted object changes everyone related to it. */
export function namesOfCall(call: Call): readonly Name[] {
  const known = namesOfCalls.get(call);
  if (known) return known;
  const names = stepsOf(call).flatMap((step): readonly Name[] => {
    switch (step.kind) {
      case 'merge':
        return [step.primary, step.secondary];
      case 'alias':
        return [step.name, step.previousName ?? step.name, `anonymous:${step.previous}`];
      case 'delete':
      case 'suppress':
      case 'unsuppress':
        return [step.name];
      case 'learn':
        return [step.name, step.svcId];
      case 'delete object':
        return [EVERYONE];
      case 'metric':
      case 'unsubscribe':
        return namesOf(step.message, step.kind === 'metric' ? step.recipient : undefined);
      default: {
        const { names: own, anonymous } = step.subject;
        return namesOf(...own, anonymous, step.kind === 'event' ? step.id : undefined);
      }
    }
  });
  namesOfCalls.set(call, names);
  return names;
}

interface Writes {
  /** Values, relationships and devices that the call writes or removes. */
  readonly all: readonly string[];
  /** Of a visitor. */
  readonly ofVisitors: readonly string[];
}

const writesOfCalls = new WeakMap<Call, Writes>();

/** The order of two calls about different people matters later if one of them is a visitor and both write the same thing. */
export function writesOfCall(call: Call): Writes {
  const known = writesOfCalls.get(call);
  if (known) return known;
  const all: string[] = [];
  const ofVisitors: string[] = [];
  for (const step of stepsOf(call)) {
    const written = writesOfStep(step);
    all.push(...written);
    if ('subject' in step && step.subject.names.length === 0) ofVisitors.push(...written);
  }
  const writes = { all, ofVisitors };
  writesOfCalls.set(call, writes);
  return writes;
}

function writesOfStep(step: Step): readonly string[] {
  switch (step.kind) {
    case 'identify': {
      const relations = step.relations ?? [];
      return [
        ...Object.keys(step.attributes),
        ...relations.map(({ object }) => relationshipMark(object)),
      ];
    }
    case 'relate':
      return step.relations.map(({ object }) => relationshipMark(object));
    case 'add device':
    case 'delete device':
      return [deviceMark(step.token)];
    case 'unsubscribe':
      return ['unsubscribed'];
    default:
      return [];
  }
}
