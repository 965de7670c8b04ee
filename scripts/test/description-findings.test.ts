/** Both linters judge a document. So an empty list shows that it has no fault. */
import { expect, test } from 'vitest';
import { findingsOf } from '../description-findings.ts';

const SOUND = {
  openapi: '3.1.0',
  info: {
    title: 'Sample',
    version: '1.0.0',
    description: 'A sample.',
    contact: { name: 'Nobody' },
    license: { name: 'Apache 2.0', identifier: 'Apache-2.0' },
  },
  servers: [{ url: '/' }],
  security: [],
  tags: [{ name: 'samples', description: 'Samples.' }],
  paths: {
    '/samples': {
      get: {
        operationId: 'listSamples',
        tags: ['samples'],
        summary: 'List samples',
        description: 'All of them.',
        responses: { 200: { description: 'Done.' }, 400: { description: 'Refused.' } },
      },
    },
  },
};

test('a sound document has no findings', async () => {
  expect(await findingsOf(JSON.stringify(SOUND))).toEqual([]);
});

test('an operation without a name and a description is a finding of both tools, though it is only a warning', async () => {
  const { operationId: _, description: __, ...unnamed } = SOUND.paths['/samples'].get;
  const faulty = { ...SOUND, paths: { '/samples': { get: unnamed } } };
  const findings = await findingsOf(JSON.stringify(faulty));
  expect(findings).toContainEqual(expect.stringMatching(/^Redocly: warn operation-operationId: /));
  expect(findings).toContainEqual(expect.stringMatching(/^Spectral: operation-description: /));
});
