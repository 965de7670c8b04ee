/** Names of people whom calls name, in each workspace. */
import { identifierText } from '@sluice/domain/operations/state-keys';
import { svcId } from '@sluice/domain/values/svc-id';
import { beforeAll, expect, test } from 'vitest';
import type { Database } from '../../../src/connection/connection.ts';
import { writeMessageDeliveries } from '../../../src/events/message-deliveries.ts';
import { writeIdentifiers } from '../../../src/people/person-identifiers.ts';
import { listNamesOfOwners } from '../../../src/people/person-names.ts';
import { createTestDatabase } from '../../../src/testing/testing.ts';

const NOBODY = {
  identifiers: [],
  people: [],
  messageDeliveries: [],
  releasesIdentifiers: false,
  releasing: new Set<string>(),
};

/** The same number in two workspaces, as another person. */
const NUMBER = 7;

let database: Database;
beforeAll(async () => {
  ({ database } = await createTestDatabase());
  const identifiers = [1, 2].flatMap((environmentId) =>
    (
      [
        ['id', `ann of ${environmentId}`],
        ['email', `ann@${environmentId}.example`],
        ['anonymous_id', `visitor of ${environmentId}`],
      ] as const
    ).map(([kind, value]) => ({
      environmentId,
      kind,
      value,
      personId: NUMBER,
      suppressed: false,
    })),
  );
  const [ann] = identifiers;
  const bob = { ...ann!, value: 'bob', personId: NUMBER + 1 };
  await writeIdentifiers(database, { inserted: [...identifiers, bob], updated: [] });
  const message = {
    environmentId: 1,
    deliveryId: 'message',
    channel: 'email',
    recipient: null,
    personId: NUMBER,
    createdAtMs: 0,
  };
  await writeMessageDeliveries(database, {
    inserted: [message, { ...message, deliveryId: 'of nobody', personId: null }],
    updated: [],
    deleted: [],
  });
});

const NAMES_OF_ANN = ['ann of 1', 'ann@1.example', svcId(NUMBER), 'visitor of 1'];

test.each<[string, Parameters<typeof listNamesOfOwners>[1]]>([
  [
    'an identifier',
    {
      ...NOBODY,
      identifiers: [
        { environmentId: 1, kind: 'email', value: 'ann@1.example', needsPerson: false },
      ],
    },
  ],
  ['the svc_id', { ...NOBODY, people: [{ environmentId: 1, personId: NUMBER }] }],
  [
    'a message',
    {
      ...NOBODY,
      messageDeliveries: ['message', 'of nobody'].map((deliveryId) => ({
        environmentId: 1,
        deliveryId,
      })),
    },
  ],
])(
  'a person named by %s has all their names alone, also if another workspace has their number',
  async (_, needs) => {
    const { names, released, messages } = await listNamesOfOwners(database, needs);
    expect(names.map(({ environmentId }) => environmentId)).toEqual(NAMES_OF_ANN.map(() => 1));
    expect(names.map(({ key }) => key).toSorted()).toEqual(NAMES_OF_ANN.toSorted());
    expect([released, messages]).toEqual([[], []]);
  },
);

const EMAIL_OF_ANN = {
  environmentId: 1,
  kind: 'email',
  value: 'ann@1.example',
  needsPerson: true,
} as const;
const BOB = { ...EMAIL_OF_ANN, kind: 'id', value: 'bob' } as const;

test.each<[string, Parameters<typeof listNamesOfOwners>[1]]>([
  [
    'an identifier',
    {
      ...NOBODY,
      identifiers: [EMAIL_OF_ANN, BOB],
      releasesIdentifiers: true,
      releasing: new Set([identifierText(1, 'email', 'ann@1.example')]),
    },
  ],
  [
    'the svc_id',
    {
      ...NOBODY,
      identifiers: [BOB],
      people: [{ environmentId: 1, personId: NUMBER }],
      releasesIdentifiers: true,
    },
  ],
])(
  'a person who may be deleted, named by %s, has all identifiers and messages apart from other people',
  async (_, needs) => {
    const { names, released, messages } = await listNamesOfOwners(database, needs);
    expect(names.map(({ key }) => key).toSorted()).toEqual(
      [...NAMES_OF_ANN, 'bob', svcId(NUMBER + 1)].toSorted(),
    );
    expect(released.toSorted((one, other) => (one.kind < other.kind ? -1 : 1))).toEqual([
      { environmentId: 1, kind: 'anonymous_id', value: 'visitor of 1' },
      { environmentId: 1, kind: 'email', value: 'ann@1.example' },
      { environmentId: 1, kind: 'id', value: 'ann of 1' },
    ]);
    expect(messages).toEqual([{ environmentId: 1, deliveryId: 'message' }]);
  },
);

test('a person whom a deletion beside names by a message keeps all names', async () => {
  const messageDeliveries = [{ environmentId: 1, deliveryId: 'message' }];
  const { released, messages } = await listNamesOfOwners(database, {
    ...NOBODY,
    messageDeliveries,
    releasesIdentifiers: true,
  });
  expect([released, messages]).toEqual([[], []]);
});

test('the number of a person is a name in each workspace whose call has it, also beside other workspaces', async () => {
  const people = [1, 2].map((environmentId) => ({ environmentId, personId: 5 }));
  const { names } = await listNamesOfOwners(database, { ...NOBODY, people });
  expect(names).toHaveLength(2);
  expect(names).toEqual(
    expect.arrayContaining([
      { environmentId: 1, key: svcId(5) },
      { environmentId: 2, key: svcId(5) },
    ]),
  );
});
