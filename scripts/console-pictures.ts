/**
 * Pictures of the web console in the documentation.
 *
 * `npm run screenshots` takes the pictures and writes the page that shows them.
 */
import { crc32 } from 'node:zlib';
import type { SCREEN_PATHS } from '@sluice/api/console/console-files';

export interface ConsolePicture {
  /** Of the file, `docs/images/console-NAME-light.png`. */
  readonly name: string;
  readonly screen: (typeof SCREEN_PATHS)[number];
  /** The question that the screen answers. */
  readonly question: string;
  /** The content of the picture, for a reader who does not see it. */
  readonly text: string;
}

export const PICTURES_PAGE = 'docs/guides/manage/console-pictures.md';

export const PICTURES = [
  {
    name: 'overview',
    screen: '/',
    question: 'Is all well?',
    text: 'Calls a minute, refused calls, failing webhooks, credits, the newest problems and changes',
  },
  {
    name: 'live',
    screen: '/live',
    question: 'Do my calls arrive, and which are refused?',
    text: 'The live tail: accepted, refused and delivered calls, one line each',
  },
  {
    name: 'event',
    screen: '/events/:id',
    question: 'How far is my event?',
    text: 'The path of an event from the call to the database, with the time of each step and its body',
  },
  {
    name: 'issues',
    screen: '/issues',
    question: 'Why was my call refused or changed?',
    text: 'Problems of calls by code and field, with their number and a sample',
  },
  {
    name: 'webhook',
    screen: '/webhooks/:id',
    question: 'Why does this endpoint get no events?',
    text: 'A webhook whose delivery 1 gets 500, the deliveries that wait behind it, and a button that tries again',
  },
  {
    name: 'person',
    screen: '/people/:id',
    question: 'Who is this person to us?',
    text: 'The attributes of a person with the time of each change, and the newest activity',
  },
  {
    name: 'audit',
    screen: '/audit',
    question: 'Who changed this?',
    text: 'The audit log: each change with its author, its key and its address',
  },
  {
    name: 'billing',
    screen: '/billing',
    question: 'How much will I be charged, and why?',
    text: 'The plan, the next invoice, the meters and the credits of an account',
  },
  {
    name: 'fleet',
    screen: '/fleet',
    question: 'How is the installation?',
    text: 'Each process with its version and age, the shards, and the work that waits',
  },
  {
    name: 'reference',
    screen: '/docs/:tag/:operation',
    question: 'Which calls does the API have?',
    text: 'One operation of the reference, with its fields, its answers and a sample to copy',
  },
] as const satisfies readonly ConsolePicture[];

export type PictureName = (typeof PICTURES)[number]['name'];

export function picturesPage(): string {
  const sections = PICTURES.map(
    ({ name, screen, question, text }) =>
      `## ${question}\n\n\`${screen}\`\n\n![${text}](../../images/console-${name}-light.png)`,
  );
  return `${HEAD}\n\n${sections.join('\n\n')}\n`;
}

/** Signature and first block. */
const PNG_HEAD_SIZE_BYTES = 33;
const DIGEST_KEYWORD = 'Page-Digest';

/** The picture with a block of text more, which viewers do not show. */
export function withPageDigest(png: Buffer, digest: string): Buffer {
  const block = Buffer.from(`tEXt${DIGEST_KEYWORD}\0${digest}`, 'latin1');
  const framed = Buffer.alloc(block.length + 8);
  framed.writeUInt32BE(block.length - 4, 0);
  block.copy(framed, 4);
  framed.writeUInt32BE(crc32(block), 4 + block.length);
  return Buffer.concat([
    png.subarray(0, PNG_HEAD_SIZE_BYTES),
    framed,
    png.subarray(PNG_HEAD_SIZE_BYTES),
  ]);
}

/** Undefined if the picture is without a digest. */
export function pageDigestOf(png: Buffer): string | undefined {
  const text = png.subarray(PNG_HEAD_SIZE_BYTES, PNG_HEAD_SIZE_BYTES + 200).toString('latin1');
  return new RegExp(`^....tEXt${DIGEST_KEYWORD}\0([0-9a-f]{64})`, 's').exec(text)?.[1];
}

const HEAD = `# The web console in pictures

**One picture for each question.** [Use the web console](console.md) lists all screens. \`npm run screenshots\` takes the pictures of a fresh
demo and writes this page.`;
