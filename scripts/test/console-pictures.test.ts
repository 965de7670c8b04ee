/** Each picture of the console exists, and so does its screen. */
import { readFileSync } from 'node:fs';
import { SCREEN_PATHS } from '@sluice/api/console/console-files';
import { expect, test } from 'vitest';
import { PICTURES, PICTURES_PAGE, picturesPage } from '../console-pictures.ts';

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
  },
);
