import { parseSegmentChange } from '@sluice/domain/track/track-v1-segments';
import { describe, expect, test } from 'vitest';
import { BASE, CONTEXT, onlyOperation, refusals } from '../support/parsing.ts';

describe('manual segments', () => {
  test.each([
    [undefined, 'id'],
    ['', 'id'],
    ['id', 'id'],
    ['email', 'email'],
    ['cio_id', 'svc_id'],
    ['svc_id', 'svc_id'],
  ])('id_type %j names people by %s', (idType, kind) => {
    const ids = kind === 'email' ? ['a@example.com', 'b@example.com'] : ['a', 'b'];
    const parsed = parseSegmentChange('add', '7', idType, { ids }, CONTEXT);
    expect(onlyOperation(parsed)).toStrictEqual({
      ...BASE,
      type: 'segment.change',
      segmentId: 7,
      action: 'add',
      people: ids.map((value) => ({ kind, value })),
    });
  });

  test('take 1 to 1,000 ids', () => {
    const remove = (ids: unknown) => parseSegmentChange('remove', '7', 'id', { ids }, CONTEXT);
    const many = (length: number) => Array.from({ length }, (_, index) => String(index));
    expect(onlyOperation(remove(many(1_000)))).toMatchObject({ action: 'remove' });
    expect(refusals(remove(many(1_001)))).toEqual(['invalid ids']);
    expect(refusals(remove([]))).toEqual(['invalid ids']);
    expect(refusals(remove('a'))).toEqual(['invalid ids']);
    expect(refusals(remove(undefined))).toEqual(['required ids']);
    expect(refusals(remove(['', 'a', null]))).toEqual(['required ids.0', 'required ids.2']);
  });

  test.each(['0', '-1', '1.5', 'abc', '99999999999'])('segment %s is refused', (segmentId) => {
    expect(refusals(parseSegmentChange('add', segmentId, 'id', { ids: ['a'] }, CONTEXT))).toEqual([
      'invalid segment_id',
    ]);
  });

  test('an unknown id_type is refused', () => {
    expect(refusals(parseSegmentChange('add', '1', 'phone', { ids: ['a'] }, CONTEXT))).toEqual([
      'invalid id_type',
    ]);
  });
});
