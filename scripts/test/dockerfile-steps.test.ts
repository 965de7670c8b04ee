/** Steps that `npm run try:image` takes from the Dockerfile. */
import { readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { readDockerfile } from '../dockerfile-steps.ts';

test('our Dockerfile is read whole: two stages, and the first command of a container', () => {
  const text = readFileSync(new URL('../../infra/Dockerfile', import.meta.url), 'utf8');
  const [install, image, ...others] = readDockerfile(text);
  expect(others).toEqual([]);
  expect(install).toMatchObject({ name: 'install', base: expect.stringMatching(/^node:/) });
  expect(image?.base).toBe(install?.base);
  // The compile cache is made by the user of the services, and root's from then on.
  const users = image?.steps.flatMap((each) => (each.step === 'user' ? [each.name] : []));
  expect(users).toEqual(['node', 'root', 'node']);
  expect(image?.steps).toContainEqual({ step: 'volume', paths: ['/spill', '/mail'] });
  expect(image?.steps.at(-1)).toMatchObject({
    step: 'entrypoint',
    words: expect.arrayContaining(['node']),
  });
  const commands = (install?.steps ?? []).flatMap((each) =>
    each.step === 'run' ? [each.command] : [],
  );
  // A comment between two lines of a command ends neither of them.
  expect(commands[0]).toMatch(/npm install .*&& rm -rf .*&& find /);
});

test('lines go on after a backslash, and an instruction that is not known is no image', () => {
  expect(readDockerfile('FROM a AS b\nENV X=1 \\\n  Y=2=3\nCOPY --from=b c d e/\n')).toEqual([
    {
      base: 'a',
      name: 'b',
      steps: [
        { step: 'environment', variables: { X: '1', Y: '2=3' } },
        { step: 'copy', from: 'b', sources: ['c', 'd'], target: 'e/' },
      ],
    },
  ]);
  expect(() => readDockerfile('FROM a\nHEALTHCHECK NONE\n')).toThrow('HEALTHCHECK');
});
