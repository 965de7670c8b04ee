/** Every example of a request in the API's own document. The API takes each as it stands. */
import { keepSignupCode } from '@sluice/database/accounts/signups';
import { sql } from 'kysely';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { hashCode } from '../../../src/accounts/signup-code.ts';
import { SECRET, startApi, type ApiUnderTest } from '../support/api-under-test.ts';
import {
  insertChangeable,
  prepareChange,
  requestOf,
  waitingStatusOf,
} from '../support/changing-operations.ts';
import { listOperations, type Operation } from '../support/every-operation.ts';

interface Schema {
  readonly $ref?: string;
  readonly anyOf?: readonly Schema[];
  readonly examples?: readonly object[];
}

interface Document {
  readonly paths: Record<
    string,
    Record<string, { requestBody?: { content: Record<string, { schema: Schema }> } }>
  >;
  readonly components: { readonly schemas: Record<string, Schema> };
}

let api: ApiUnderTest;
let owned: Readonly<Record<string, string>>;
let document: Document;
beforeAll(async () => {
  api = await startApi();
  owned = await insertChangeable(api);
  document = (await api.app.inject('/openapi.json')).json();
});
afterAll(() => api.close());

function examplesOf({ method, path }: Operation): readonly object[] {
  const content = document.paths[path]?.[method.toLowerCase()]?.requestBody?.content ?? {};
  const of = ({ $ref, anyOf, examples }: Schema): readonly object[] => {
    if ($ref !== undefined) return of(document.components.schemas[$ref.split('/').at(-1)!]!);
    return examples ?? anyOf?.flatMap(of) ?? [];
  };
  return Object.values(content)
    .slice(0, 1)
    .flatMap(({ schema }) => of(schema));
}

/** Values that no document can have: a secret and a workspace of the caller's own. */
const filledIn = (example: object): object => ({
  ...example,
  ...('client_secret' in example && { client_secret: api.a.token }),
  ...('environment_ids' in example && { environment_ids: [api.a.environmentId] }),
  ...('environment_id' in example && { environment_id: api.a.environmentId }),
});

/** As if the code of the example had been mailed to its address. */
async function mailCode({ email, code }: { email: string; code: string }): Promise<void> {
  await api.app.inject({ method: 'POST', url: '/v1/account_signup', payload: { email } });
  const { rows } = await sql<{ signupId: string }>`
    select signup_id as "signupId" from signups order by signup_id desc limit 1`.execute(
    api.database,
  );
  const { signupId } = rows[0]!;
  const hash = hashCode(SECRET, 'signup code', signupId, email, code);
  await keepSignupCode(api.database, signupId, hash, api.clock.nowMs + 60_000);
}

/** It asks the payment provider, who is away here. */
const PROVIDER_AWAY: Readonly<Record<string, number>> = {
  '/v1/accounts/{account_id}/billing/payment_method/default': 503,
};

test('each operation that takes a body has an example of one, which the API takes', async () => {
  const operations = listOperations(api)
    .filter(({ takesBody }) => takesBody)
    // Operations with a change come last: a webhook that is disabled takes no more of the others.
    .toSorted((one, other) => one.method.localeCompare(other.method));
  const refused: unknown[] = [];
  for (const operation of operations) {
    const examples = examplesOf(operation);
    if (examples.length === 0) refused.push({ ...operation, why: 'it has no example' });
    for (const example of examples) {
      await sql`update runs set status = 'failed', finished_at = now()`.execute(api.database);
      await prepareChange(api, operation);
      if ('code' in example) await mailCode(example as { email: string; code: string });
      const answer = await api.app.inject({
        ...requestOf(api, operation, owned),
        payload: JSON.stringify(filledIn(example)),
      });
      const isTaken =
        answer.statusCode < 300 ||
        answer.statusCode === waitingStatusOf(operation) ||
        answer.statusCode === PROVIDER_AWAY[operation.path];
      if (!isTaken) refused.push({ path: operation.path, example, body: answer.body });
    }
  }
  expect(refused).toEqual([]);
  expect(operations.length).toBeGreaterThan(30);
});
