/** Addresses of people. */
import { expect, test } from 'vitest';
import { personAddress } from '../../src/routing/person-address.ts';

test('a person with any identifier has an address that a browser leaves as it is', () => {
  for (const identifier of ['ada', 'a/b', '%2e%2e', '.a', '...', 'ä 😀', '.', '..']) {
    const { path } = personAddress(identifier, 'id');
    expect(new URL(path, 'https://a.example').pathname).toBe(path);
    expect(path).toMatch(/^\/people/);
  }
  expect(personAddress('a@b.c', 'email')).toEqual({
    path: '/people/a%40b.c',
    query: { by: 'email' },
  });
});

test('an identifier that no path can name leads to the list that finds it', () => {
  for (const identifier of ['.', '..'])
    expect(personAddress(identifier, 'id')).toEqual({
      path: '/people',
      query: { begins: identifier },
    });
});
