/** The address of a screen: its names, its text, and the parameters that it keeps. */
import { expect, test } from 'vitest';
import { linkTo, matchPath, readQuery, segment, writeQuery } from '../../src/routing/location.ts';

test('a path gives its parameters, decoded', () => {
  expect(matchPath('/events/:id', '/events/a%2Fb%20c')).toEqual({ id: 'a/b c' });
  expect(matchPath('/events/:id', '/events/1/')).toEqual({ id: '1' });
  expect(matchPath('/start', '/start')).toEqual({});
});

test.each(['/events', '/events/', '/events/%', '/events/a/b', '/other/a'])(
  '%s is another path',
  (path) => {
    expect(matchPath('/events/:id', path)).toBeUndefined();
  },
);

test('an id with any characters comes back unchanged from its address', () => {
  for (const id of ['a/b', '../x', '?q#h', 'ä 😀', '%2F', '\u0000'])
    expect(matchPath('/events/:id', `/events/${segment(id)}`)).toEqual({ id });
});

test('parameters that the screen does not know, and values that it does not admit, are left out', () => {
  const rules = { state: ['pending'], start: /^\d+$/ };
  expect(readQuery('?state=pending&start=12&tz=local&more=1', rules)).toEqual({
    state: 'pending',
    start: '12',
    tz: 'local',
  });
  expect(readQuery('?state=gone&start=x&tz=utc&workspace=01', rules)).toEqual({});
});

test('one state has one address, and a link keeps zone and workspace alone', () => {
  expect(writeQuery({ b: '2', a: '1', c: undefined, d: '' })).toBe('?a=1&b=2');
  expect(linkTo('/live', { tz: 'local', workspace: '2', state: 'pending' }, { name: 'x y' })).toBe(
    '/live?name=x+y&tz=local&workspace=2',
  );
});
