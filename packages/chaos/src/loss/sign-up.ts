/**
 * A person that signs up with a new id and email.
 *
 * The person does something under the email, and becomes part of another person, leaves, or stays. Consecutive calls
 * name the person by different identifiers.
 *
 * Used by `load.ts`.
 */
import { pick, type Random } from '@sluice/domain/values/seeded-random';
import { PIPELINES, TRACK, type Call, type SentPerson } from './loss-call.ts';

/** @param other - the name of a person of the same client, who is there. */
export function callsOfSignUp(
  person: SentPerson,
  other: string,
  random: Random,
  newId: () => string,
): readonly Call[] {
  const { name, email = '' } = person;
  const signUp: Call = {
    name: 'PUT /api/v1/customers, with an email',
    method: 'PUT',
    path: `/api/v1/customers/${name}`,
    headers: TRACK,
    body: { email, step: 1 },
    acknowledge: () => void (person.step = 1),
  };
  const becomePartOf = (call: Omit<Call, 'method' | 'acknowledge'>): Call => ({
    ...call,
    method: 'POST',
    acknowledge: () => void (person.fate = { mergedInto: other }),
  });
  const ends: readonly (readonly Call[])[] = [
    [],
    [
      {
        name: 'DELETE /api/v1/customers, by email',
        method: 'DELETE',
        path: `/api/v1/customers/${encodeURIComponent(email)}`,
        headers: TRACK,
        body: {},
        acknowledge: () => void (person.fate = 'deleted'),
      },
    ],
    [
      becomePartOf({
        name: 'POST /api/v1/merge_customers',
        path: '/api/v1/merge_customers',
        headers: TRACK,
        body: { primary: { id: other }, secondary: { email } },
      }),
    ],
    [
      becomePartOf({
        name: 'POST /v1/alias',
        path: '/v1/alias',
        headers: PIPELINES,
        body: { previousId: name, userId: other },
      }),
    ],
  ];
  return [signUp, eventByEmail(person, newId()), ...pick(random, ends)];
}

const eventByEmail = (person: SentPerson, eventId: string): Call => ({
  name: 'POST /v1/track, by email',
  method: 'POST',
  path: '/v1/track',
  headers: PIPELINES,
  body: { userId: person.email, event: eventId, messageId: eventId },
  acknowledge: (call) => void person.events.push({ eventId, call }),
});
