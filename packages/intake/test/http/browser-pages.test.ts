import { createHash } from 'node:crypto';
import { Script } from 'node:vm';
import { expect, test } from 'vitest';
import { KeyRing } from '../../src/auth/authenticate.ts';
import { clientPage, snippetPage } from '../../src/http/browser-pages.ts';

const keys = new KeyRing();
const KEY = `a"</script>'`;
keys.replace([
  {
    kind: 'pipelines',
    siteId: null,
    secretHash: createHash('sha256').update(KEY).digest(),
    environmentId: 1,
    accountId: '1',
    phoneIdentifies: false,
  },
]);

test.each([`x'+alert(1)+'`, 'x</script>', 'a b', '', 'x'.repeat(256), 'a/b', '$&'])(
  'a Host of %j does not get into a script',
  (host) => {
    expect(snippetPage(host, false)).toMatchObject({ status: '400 Bad Request' });
    expect(clientPage(keys, KEY, host, false)).toMatchObject({ status: '400 Bad Request' });
  },
);

test('a write key stays a text inside the client, whatever is in it', () => {
  const { body } = clientPage(keys, KEY, 'intake.example:8080', true);
  expect(body).toContain(`var writeKey = "a\\"\\u003c/script>'";`);
  expect(body).toContain(`var origin = 'https://intake.example:8080';`);
  // It parses, which a key that broke out of its quotes would not let it.
  expect(() => new Script(body)).not.toThrow();
});
