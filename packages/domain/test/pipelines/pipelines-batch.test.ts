import { parsePipelines, type PipelinesCall } from '@sluice/domain/pipelines/pipelines';
import { describe, expect, test } from 'vitest';
import { CONTEXT, nested, onlyIssue, RECEIVED_AT_MS, refusals } from '../support/parsing.ts';

const parse = (call: PipelinesCall, body: unknown) => parsePipelines(call, body, CONTEXT);

describe('batch', () => {
  test('reads each item as the call of its type, in order', () => {
    const parsed = parse('batch', {
      batch: [
        { type: 'identify', userId: 'u1', traits: {} },
        { type: 'track', userId: 'u1', event: 'e' },
        { type: 'page', userId: 'u1', name: 'Home' },
        { type: 'screen', userId: 'u1', name: 'Home' },
        { type: 'group', userId: 'u1', groupId: 'g' },
        { type: 'alias', userId: 'u1', previousId: 'u0' },
      ],
      writeKey: 'k',
    });
    expect(parsed.issues).toEqual([]);
    expect(parsed.operations.map((operation) => operation.type)).toEqual([
      'person.identify',
      'event.track',
      'event.track',
      'event.track',
      'object.identify',
      'person.merge',
    ]);
  });

  test('a bad item does not hurt its neighbours, and its issues have its index', () => {
    const parsed = parse('batch', {
      batch: [
        { type: 'track', userId: 'u1', event: 'a' },
        { type: 'track', userId: 'u1' },
        7,
        { type: 'track', userId: 'u1', event: 'b' },
      ],
    });
    expect(parsed.operations).toHaveLength(2);
    expect(parsed.issues).toMatchObject([
      { code: 'required', field: 'event', batchIndex: 1 },
      { code: 'invalid', field: null, batchIndex: 2 },
    ]);
  });

  test.each([
    [{}, 'required type'],
    [{ type: null }, 'required type'],
    [{ type: 'batch', batch: [] }, 'unsupported type'],
    [{ type: 'constructor' }, 'unsupported type'],
    [{ type: 5 }, 'unsupported type'],
  ])('an item %j is refused', (item, refusal) => {
    expect(refusals(parse('batch', { batch: [item] }))).toEqual([refusal]);
  });

  test('sentAt and context around the items hold for each of them', () => {
    const parsed = parse('batch', {
      sentAt: '2030-01-01T00:00:10Z',
      context: { device: { token: 't', type: 'ios' } },
      batch: [
        { type: 'track', userId: 'u1', event: 'e', originalTimestamp: '2030-01-01T00:00:00Z' },
        { type: 'track', userId: 'u1', event: 'Device Deleted' },
      ],
    });
    expect(parsed.operations).toMatchObject([
      { occurredAtMs: RECEIVED_AT_MS - 10_000 },
      { type: 'device.delete', token: 't' },
    ]);
  });

  test('holds 1 to 2,500 items', () => {
    const items = (length: number) => ({
      batch: Array.from({ length }, () => ({ type: 'track', userId: 'u1', event: 'e' })),
    });
    expect(parse('batch', items(2_500)).operations).toHaveLength(2_500);
    expect(onlyIssue(parse('batch', items(2_501)))).toMatchObject({
      code: 'too_large',
      field: 'batch',
      message: 'batch holds 2501 items; the bound is 2500',
    });
    expect(refusals(parse('batch', items(0)))).toEqual(['required batch']);
  });

  test.each([
    [{}, 'required batch'],
    [{ batch: null }, 'required batch'],
    [{ batch: {} }, 'invalid batch'],
    [[], 'invalid -'],
    [null, 'invalid -'],
    [5, 'invalid -'],
  ])('%j is refused', (body, refusal) => {
    expect(refusals(parse('batch', body))).toEqual([refusal]);
  });

  test('an item has at most 64 KB of JSON, in a batch of any size', () => {
    const item = (sizeBytes: number) => {
      const empty = JSON.stringify({
        type: 'track',
        userId: 'u1',
        event: 'e',
        properties: { x: '' },
      }).length;
      return {
        type: 'track',
        userId: 'u1',
        event: 'e',
        properties: { x: 'y'.repeat(sizeBytes - empty) },
      };
    };
    const batchOf = (sizeBytes: number) =>
      parsePipelines(
        'batch',
        { batch: [item(sizeBytes), item(100)] },
        { ...CONTEXT, bodySizeBytes: 70_000 },
      );
    expect(batchOf(65_536).operations).toHaveLength(2);
    const parsed = batchOf(65_537);
    expect(parsed.operations).toHaveLength(1);
    expect(parsed.issues).toMatchObject([{ code: 'too_large', batchIndex: 0 }]);
    expect(parsed.issues[0]?.message).toContain('64 KB');
  });

  test('an item that is refused late takes back all of its operations', () => {
    const context = { device: { token: 't', type: 'ios' } };
    const parsed = parse('batch', {
      batch: [
        { type: 'track', userId: 'u0', event: 'e' },
        {
          type: 'track',
          userId: 'u1',
          event: 'Application Opened',
          context,
          properties: nested(101),
        },
      ],
    });
    expect(parsed.operations).toMatchObject([{ person: { value: 'u0' } }]);
    expect(parsed.issues).toMatchObject([{ code: 'invalid', batchIndex: 1 }]);
  });
});
