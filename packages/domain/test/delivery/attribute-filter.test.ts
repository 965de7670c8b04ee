import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { matchesFilters, type AttributeFilter } from '../../src/delivery/attribute-filter.ts';
import type { ReportingEvent } from '../../src/delivery/reporting-event.ts';
import type { Json, JsonObject } from '../../src/values/json.ts';

const event: ReportingEvent = {
  environmentId: 1,
  eventId: 'e1',
  eventType: 'email_clicked',
  objectType: 'email',
  metric: 'clicked',
  occurredAtMs: 0,
  data: {
    campaign_id: 7,
    customer_id: '',
    machine: false,
    href: null,
    identifiers: { id: '42', email: 'Ann@Example.com' },
    subject: 'Your order is on its way',
    price: '19.50',
    big: '12345678901234567890',
    tags: ['new', 5, null],
    recipients: [{ device_id: 'a', left: 3 }, { device_id: 'b', left: 9 }, 'text'],
    'dotted.key': { in: 'exact' },
    order: { id: 'o1' },
    'order.total': { net: 5 },
  },
};

test.each<[boolean, AttributeFilter]>([
  [true, { field: 'object_type', operator: 'eq', values: ['sms', 'email'] }],
  [false, { field: 'object_type', operator: 'eq', values: ['sms'] }],
  [true, { field: 'metric', operator: 'eq', values: ['clicked'] }],
  [true, { field: 'data.campaign_id', operator: 'eq', values: ['7'] }],
  [true, { field: 'data.machine', operator: 'eq', values: ['false'] }],
  [true, { field: 'data.customer_id', operator: 'eq', values: [''] }],
  [true, { field: 'data.identifiers.id', operator: 'eq', values: ['42'] }],
  [false, { field: 'data.identifiers', operator: 'eq', values: ['[object Object]'] }],
  [false, { field: 'data.href', operator: 'eq', values: ['null'] }],
  [true, { field: 'data.href', operator: 'not_eq', values: ['null'] }],
  [false, { field: 'data.campaign_id', operator: 'not_eq', values: ['1', '7'] }],
  [true, { field: 'data.unknown', operator: 'not_eq', values: ['x'] }],
  [true, { field: 'data.identifiers', operator: 'exists' }],
  [false, { field: 'data.href', operator: 'exists' }],
  [true, { field: 'data.href', operator: 'not_exists' }],
  [false, { field: 'data.campaign_id.deeper', operator: 'exists' }],
  // As segments mean them: `messaging-conventions.md` §1.4.
  [true, { field: 'data.campaign_id', operator: 'in', values: ['6', '7'] }],
  [false, { field: 'data.campaign_id', operator: 'not_in', values: ['6', '7'] }],
  [true, { field: 'data.unknown', operator: 'not_in', values: ['6'] }],
  [true, { field: 'data.campaign_id', operator: 'gt', values: ['6.5'] }],
  [false, { field: 'data.campaign_id', operator: 'gt', values: ['7'] }],
  [true, { field: 'data.campaign_id', operator: 'gte', values: ['7'] }],
  [true, { field: 'data.campaign_id', operator: 'lte', values: ['7'] }],
  [false, { field: 'data.campaign_id', operator: 'lt', values: ['7'] }],
  [true, { field: 'data.campaign_id', operator: 'lt', values: ['1e1'] }],
  [true, { field: 'data.price', operator: 'gt', values: ['19.4'] }],
  [false, { field: 'data.subject', operator: 'gt', values: ['1'] }],
  [false, { field: 'data.machine', operator: 'lt', values: ['1'] }],
  [false, { field: 'data.customer_id', operator: 'lt', values: ['1'] }],
  [false, { field: 'data.unknown', operator: 'lt', values: ['1'] }],
  [false, { field: 'data.tags', operator: 'gt', values: ['1'] }],
  // Beyond 2^53, exactly.
  [true, { field: 'data.big', operator: 'eq', values: ['12345678901234567890'] }],
  [false, { field: 'data.big', operator: 'eq', values: ['12345678901234567000'] }],
  [true, { field: 'data.big', operator: 'gt', values: ['12345678901234567889'] }],
  [false, { field: 'data.big', operator: 'gt', values: ['12345678901234567890'] }],
  [true, { field: 'data.big', operator: 'lte', values: ['12345678901234567890'] }],
  [true, { field: 'timestamp', operator: 'gte', values: ['0'] }],
  [true, { field: 'data.subject', operator: 'contains', values: ['order'] }],
  [false, { field: 'data.subject', operator: 'contains', values: ['Order'] }],
  [true, { field: 'data.subject', operator: 'not_contains', values: ['refund'] }],
  [false, { field: 'data.campaign_id', operator: 'contains', values: ['7'] }],
  [true, { field: 'data.unknown', operator: 'not_contains', values: ['x'] }],
  [true, { field: 'data.tags', operator: 'contains', values: ['5'] }],
  [false, { field: 'data.tags', operator: 'contains', values: ['ne'] }],
  [true, { field: 'data.tags', operator: 'eq', values: ['new'] }],
  [false, { field: 'data.tags', operator: 'not_eq', values: ['new'] }],
  [false, { field: 'data.tags', operator: 'eq', values: ['null'] }],
  [true, { field: 'data.identifiers.email', operator: 'eq', values: ['ann@example.com'] }],
  [true, { field: 'data.identifiers.email', operator: 'contains', values: ['@EXAMPLE.'] }],
  // Members of lists.
  [true, { field: 'data.recipients.device_id', operator: 'eq', values: ['b'] }],
  [false, { field: 'data.recipients.device_id', operator: 'eq', values: ['c'] }],
  [false, { field: 'data.recipients.device_id', operator: 'not_eq', values: ['b'] }],
  [true, { field: 'data.recipients.1.device_id', operator: 'eq', values: ['b'] }],
  [false, { field: 'data.recipients.0.device_id', operator: 'eq', values: ['b'] }],
  [false, { field: 'data.recipients.7.device_id', operator: 'exists' }],
  [true, { field: 'data.recipients.left', operator: 'gt', values: ['8'] }],
  [false, { field: 'data.recipients.left', operator: 'gt', values: ['9'] }],
  [true, { field: 'data.tags.1', operator: 'eq', values: ['5'] }],
  [false, { field: 'data.recipients.unknown', operator: 'exists' }],
  [false, { field: 'data.recipients.length', operator: 'exists' }],
  // The longest key first, so a shorter one that is there too does not hide it.
  [true, { field: 'data.order.total.net', operator: 'eq', values: ['5'] }],
  [true, { field: 'data.order.id', operator: 'eq', values: ['o1'] }],
  [true, { field: 'data.dotted.key.in', operator: 'eq', values: ['exact'] }],
  [
    true,
    {
      field: 'data.identifiers',
      operator: 'eq',
      values: ['{"email":"Ann@Example.com","id":"42"}'],
    },
  ],
  // Security: members that every object inherits do not count.
  [false, { field: 'data.constructor', operator: 'exists' }],
  [false, { field: '__proto__', operator: 'exists' }],
  [false, { field: '', operator: 'exists' }],
])('%s for %j', (expected, filter) => {
  expect(matchesFilters(event, [filter])).toBe(expected);
});

test('all filters must hold, and an empty list is true of every event', () => {
  const holds: AttributeFilter = { field: 'metric', operator: 'exists' };
  expect(matchesFilters(event, [])).toBe(true);
  expect(matchesFilters(event, [holds, { field: 'metric', operator: 'not_exists' }])).toBe(false);
});

const matches = (data: JsonObject, filter: AttributeFilter): boolean =>
  matchesFilters({ ...event, data }, [filter]);

/** As the description of `field` has it, with each beginning of the path looked up. */
function findSlowly(value: JsonObject, path: string): boolean {
  const parts = path.split('.');
  for (let count = parts.length; count > 0; count--) {
    const key = parts.slice(0, count).join('.');
    if (key === '' || !Object.hasOwn(value, key)) continue;
    const member = value[key] as Json;
    if (count === parts.length) return member !== null;
    return typeof member === 'object' && member !== null
      ? findSlowly(member as JsonObject, parts.slice(count).join('.'))
      : false;
  }
  return false;
}

test('the longest key of an object is found first, among few keys and among many', () => {
  const key = fc.constantFrom('a', 'b', 'a.b', 'a.b.a', 'b.a', 'c', 'd', 'e', 'f', 'g', 'h');
  const { object } = fc.letrec<{ object: JsonObject }>((tie) => ({
    object: fc.dictionary(key, fc.oneof({ depthSize: 'small' }, fc.constant(1), tie('object')), {
      maxKeys: 11,
    }) as fc.Arbitrary<JsonObject>,
  }));
  const path = fc.array(fc.constantFrom('a', 'b', 'c'), { minLength: 1, maxLength: 5 });
  fc.assert(
    fc.property(object, path, (data, parts) => {
      const field = `data.${parts.join('.')}`;
      expect(matches(data, { field, operator: 'exists' })).toBe(findSlowly(data, parts.join('.')));
    }),
    { numRuns: 2_000 },
  );
});

test('whole numbers of any length stand to each other as numbers do', () => {
  fc.assert(
    fc.property(
      fc.bigInt(-1_000n, 1_000n),
      fc.bigInt(-1_000n, 1_000n),
      fc.nat(30),
      (a, b, zeros) => {
        const [one, other] = [a, b].map(
          (number) => `${number}${number === 0n ? '' : '0'.repeat(zeros)}`,
        );
        const filter = { field: 'data.n', values: [other as string] };
        expect(matches({ n: one as string }, { ...filter, operator: 'gt' })).toBe(a > b);
        expect(matches({ n: one as string }, { ...filter, operator: 'lte' })).toBe(a <= b);
      },
    ),
  );
  expect(matches({ n: '-0' }, { field: 'data.n', operator: 'gte', values: ['0'] })).toBe(true);
});

// One event of 64 KB kept a worker busy for a minute, with filters of its own workspace.
describe('work is bounded', () => {
  test('of a long path in a list of small objects', () => {
    let lookUps = 0;
    const small = new Proxy<JsonObject>(
      { x: 1 },
      {
        getOwnPropertyDescriptor(target, key) {
          lookUps++;
          return Reflect.getOwnPropertyDescriptor(target, key);
        },
      },
    );
    const field = `data.list.${'a.'.repeat(90)}a`;
    const data = { list: Array<Json>(100).fill(small) };
    expect(matches(data, { field, operator: 'exists' })).toBe(false);
    // A look for the whole path, and one for each key.
    expect(lookUps).toBeLessThanOrEqual(300);
  });

  test.each(['data.list', 'data.email'])(
    'of %s, a list of texts that many values are asked for',
    (field) => {
      let reads = 0;
      const values = new Proxy(
        Array.from({ length: 1_000 }, (_, at) => `v${at}`),
        {
          get(target, key, receiver) {
            reads++;
            return Reflect.get(target, key, receiver) as unknown;
          },
        },
      );
      const list = Array.from({ length: 1_000 }, (_, at) => `t${at}`);
      expect(matches({ list, email: list }, { field, operator: 'in', values })).toBe(false);
      expect(reads).toBeLessThan(20_000);
    },
  );
});

// Another tenant's deliveries waited for 0.7 s an event, of which the workspace itself sent any number.
test('a thousand values with a common beginning are searched in a long text in the time of a few', () => {
  const withText = (text: string): ReportingEvent => ({ ...event, data: { text } });
  const msOf = (valueCount: number): number => {
    const values = Array.from({ length: valueCount }, (_, index) => `aab${index}`);
    const filter: AttributeFilter = { field: 'data.text', operator: 'contains', values };
    const texts = Array.from({ length: 5 }, (_, index) => 'a'.repeat(60_000 + index));
    const startedAt = process.cpuUsage();
    for (const text of texts) expect(matchesFilters(withText(text), [filter])).toBe(false);
    const last = withText(`${texts[0]}aab${valueCount - 1}`);
    expect(matchesFilters(last, [filter])).toBe(true);
    const { user, system } = process.cpuUsage(startedAt);
    return (user + system) / 1_000;
  };
  msOf(50);
  expect(msOf(1_000)).toBeLessThan(5 * Math.max(msOf(50), 20));
});

// To make a search for a thousand long values takes a second and 100 MB, and a webhook gets few events with long texts.
test('a search for all values is made only when it has paid, however long the values are', () => {
  const values = Array.from({ length: 1_000 }, (_, n) => `${n}-`.repeat(1_000).slice(0, 1_000));
  const texts = Array.from({ length: 2 }, (_, n) => 'b'.repeat(20_000 + n));
  const filter: AttributeFilter = { field: 'data.text', operator: 'contains', values };
  const cpuMsOf = (use: () => void): number => {
    const startedAt = process.cpuUsage();
    use();
    const { user, system } = process.cpuUsage(startedAt);
    return (user + system) / 1_000;
  };
  const oneByOneMs = cpuMsOf(() => {
    for (const text of texts) expect(values.some((value) => text.includes(value))).toBe(false);
  });
  const filterMs = cpuMsOf(() => {
    for (const text of texts)
      expect(matchesFilters({ ...event, data: { text } }, [filter])).toBe(false);
  });
  expect(filterMs).toBeLessThan(5 * Math.max(oneByOneMs, 20));
});
