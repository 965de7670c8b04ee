/** Each picture of the console exists, and so does its screen. */
import { readFileSync } from 'node:fs';
import { crc32 } from 'node:zlib';
import { SCREEN_PATHS } from '@sluice/api/console/console-files';
import { expect, test } from 'vitest';
import {
  PICTURES,
  PICTURES_PAGE,
  pageDigestOf,
  picturesPage,
  withPageDigest,
} from '../console-pictures.ts';

const ROOT = new URL('../../', import.meta.url);
const read = (path: string): Buffer => readFileSync(new URL(path, ROOT));

test('the page is as `npm run screenshots` writes it', () => {
  expect(read(PICTURES_PAGE).toString()).toBe(picturesPage());
});

test.each(PICTURES.map(({ name, screen }) => [name, screen]))(
  'the picture "%s" is of a screen, and as wide as the page',
  (name, screen) => {
    expect(SCREEN_PATHS).toContain(screen);
    const file = read(`docs/images/console-${name}-light.png`);
    expect(file.subarray(1, 4).toString()).toBe('PNG');
    // Its first block has the width and the height.
    expect([file.readUInt32BE(16), file.readUInt32BE(20)]).toEqual([1200, 720]);
    expect(pageDigestOf(file)).toMatch(/^[0-9a-f]{64}$/);
  },
);

test('a picture carries the digest of its page in a block that is valid PNG', () => {
  const plain = Buffer.from(
    'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNkYPhfDwAChwGA60e6kgAAAABJRU5ErkJggg==',
    'base64',
  );
  expect(pageDigestOf(plain)).toBeUndefined();
  const digest = 'a1'.repeat(32);
  const marked = withPageDigest(plain, digest);
  expect(pageDigestOf(marked)).toBe(digest);
  const blocks: string[] = [];
  for (let at = 8; at < marked.length;) {
    const size = marked.readUInt32BE(at);
    blocks.push(marked.toString('latin1', at + 4, at + 8));
    expect(marked.readUInt32BE(at + 8 + size)).toBe(crc32(marked.subarray(at + 4, at + 8 + size)));
    at += 12 + size;
  }
  expect(blocks).toEqual(['IHDR', 'tEXt', 'IDAT', 'IEND']);
});
