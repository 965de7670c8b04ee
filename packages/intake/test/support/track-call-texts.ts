/**
 * Track calls as clients write them, and worse. They are texts, because the forms of JSON are half of the test. Mostly
 * right, for else each would only be a fault.
 */
import fc from 'fast-check';

/** One of `right`, or once in `every` times the other. */
const mostly = (every: number, right: fc.Arbitrary<string>, otherwise: fc.Arbitrary<string>) =>
  fc.oneof({ weight: every - 1, arbitrary: right }, { weight: 1, arbitrary: otherwise });
const oneOf = (...texts: string[]) => fc.constantFrom(...texts);
const joined = (...parts: fc.Arbitrary<string>[]) =>
  fc.tuple(...parts).map((texts) => texts.join(''));

const space = mostly(40, mostly(8, oneOf(''), oneOf(' ', '\n', '\t\r')), oneOf('\u00a0', '\f'));

const word = fc.oneof(
  oneOf('u', 'user-1', 'a@b.de', 'svc_0a1b2c', ' x', 'x ', '', 'Order Placed', 'User Deleted'),
  oneOf('2026-11-20T10:00:00.123Z', '2026-02-29T10:00:00Z', '2026-11-20', '2026-11-20T10:00+02'),
  oneOf('01JD0000000000000000000000', 'x'.repeat(150), 'x'.repeat(151), '\u0000', '\ud800'),
  fc.string({ maxLength: 40 }),
  fc.string({ unit: 'binary', maxLength: 20 }),
);
const quoted = word.map((each) => JSON.stringify(each));

const leaf = mostly(
  12,
  fc.oneof(
    oneOf('null', 'true', 'false', '0', '-0', '1', '-1.5', '[]', '{}'),
    oneOf('"a"', '"\\/"', '"é"', '"𝄞"', String.raw`"a\\b\"c\n"`, '"2026-11-20"'),
    fc.double({ noNaN: true, noDefaultInfinity: true, min: -1e9, max: 1e9 }).map(String),
    quoted,
  ),
  fc.oneof(
    oneOf('1e5', '1E999', '01', '1.', '.5', '-', '0.1000000000000000055511151231257827'),
    oneOf(String.raw`"\x"`, String.raw`"\u0041"`, 'nul', 'tru', '[1,]', '{"a":1,}', '"'),
  ),
);

const { value, object } = fc.letrec<{ value: string; object: string }>((tie) => ({
  value: fc.oneof(
    { depthSize: 'small', withCrossShrink: true },
    leaf,
    fc.array(tie('value'), { maxLength: 3 }).map((values) => `[${values.join(',')}]`),
    tie('object'),
  ),
  object: fc
    .array(joined(quoted, space, oneOf(':'), space, tie('value'), space), { maxLength: 3 })
    .map((members) => `{${members.join(',')}}`),
}));

const member = (key: string, right: fc.Arbitrary<string>) =>
  joined(oneOf(`"${key}"`), space, oneOf(':'), space, mostly(25, right, value));
const maybe = (text: fc.Arbitrary<string>, freq = 1) => fc.option(text, { nil: undefined, freq });

const email = fc
  .tuple(
    fc.string({
      unit: fc.constantFrom('a', 'Z', '9', '.', '+', '-', '_', '@', 'é', ' '),
      minLength: 1,
      maxLength: 4,
    }),
    fc.string({
      unit: fc.constantFrom('b', 'Y', '0', '.', '-', '_', '@'),
      minLength: 1,
      maxLength: 6,
    }),
  )
  .map(([name, host]) => JSON.stringify(`${name}@${host}.de`));
const id = mostly(5, oneOf('"user-1"', '"u"', '"user 2"', 'null'), email);
const instant = oneOf(
  '"2026-11-20T10:00:00.123Z"',
  '"2026-11-19T23:58:00Z"',
  '"2001-09-09T01:46:39.500Z"',
  '"1970-01-01T00:00:00Z"',
  '"9999-12-28T23:59:59.999Z"',
);

const sentAt = mostly(
  8,
  oneOf('"2026-11-20T00:00:00.200Z"', '"2026-11-20T00:00:30Z"', '"2026-11-19T13:00:00.001Z"'),
  oneOf('"2026-12-20T00:00:00Z"', '""', 'null', '"2026-11-20"', '7'),
);

/** A track call, or an item of a batch. */
export const trackCall = fc
  .tuple(
    member('type', oneOf('"track"')),
    member('userId', id),
    member('event', oneOf('"Order Placed"', '"e"', '"x y"')),
    maybe(member('anonymousId', id)),
    maybe(member('timestamp', instant)),
    maybe(member('messageId', oneOf('"m-1"', '"m-2"'))),
    maybe(member('properties', object), 4),
    maybe(member('context', object)),
    maybe(member('originalTimestamp', oneOf('null'))),
    maybe(member('sentAt', sentAt)),
    maybe(joined(quoted, oneOf(':'), value)),
    fc.tuple(space, fc.nat(30)),
  )
  .map(([type, userId, ...rest]) => {
    const [gap, again] = rest.pop() as [string, number];
    const members = [type, userId, ...(rest as (string | undefined)[])];
    if (again === 0) members.push(userId);
    return `{${gap}${members.filter((each) => each !== undefined).join(`${gap},`)}${gap}}`;
  });

export const trackBatch = fc
  .tuple(
    fc.array(trackCall, { minLength: 1, maxLength: 3 }),
    maybe(member('sentAt', sentAt)),
    fc.boolean(),
  )
  .map(([items, sent, isFirst]) => {
    const members = [`"batch":[${items.join(',')}]`];
    if (sent !== undefined) members.splice(isFirst ? 0 : 1, 0, sent);
    return `{${members.join(',')}}`;
  });

/** The bytes that are overwritten, left out or doubled; most often an empty list. */
export const damage = fc.oneof(
  { weight: 3, arbitrary: fc.constant([]) },
  {
    weight: 1,
    arbitrary: fc.array(
      fc.record({
        place: fc.nat(500),
        kind: fc.constantFrom('overwritten', 'left out', 'added'),
        byte: fc.oneof(fc.constantFrom(0x22, 0x2c, 0x3a, 0x5c, 0x7b, 0x7d, 0x30), fc.nat(255)),
      }),
      { minLength: 1, maxLength: 2 },
    ),
  },
);

export function damaged(
  bytes: Uint8Array,
  damages: readonly { place: number; kind: string; byte: number }[],
): Uint8Array {
  const result = [...bytes];
  for (const { place, kind, byte } of damages) {
    const at = place % result.length;
    if (kind === 'overwritten') result[at] = byte;
    else if (kind === 'left out') result.splice(at, 1);
    else result.splice(at, 0, byte);
  }
  return Uint8Array.from(result);
}
