#!/usr/bin/env node
// A small curl for machines without it: -s, -f, -w, -u, -H, -d and retries, as the banner's lines use them.
const options = {
  headers: new Headers(),
  isFailing: false,
  retries: 0,
  delayMs: 1_000,
  isAny: false,
};
let url = '';
let body;
let last = '';
const words = process.argv.slice(2);
for (let word = words.shift(); word !== undefined; word = words.shift()) {
  if (/^-[sf]+$/.test(word)) options.isFailing ||= word.includes('f');
  else if (word === '-u') options.headers.set('authorization', `Basic ${btoa(words.shift())}`);
  else if (word === '-H') options.headers.set(...words.shift().split(': '));
  else if (word === '-d') body = words.shift();
  else if (word === '-w') last = words.shift().replaceAll(String.raw`\n`, '\n');
  else if (word === '--retry') options.retries = Number(words.shift());
  else if (word === '--retry-delay') options.delayMs = 1_000 * Number(words.shift());
  else if (word === '--retry-all-errors' || word === '--retry-connrefused') options.isAny = true;
  else if (word.startsWith('-')) throw new Error(`curl.mjs does not know ${word}`);
  else url = word;
}
const method = body === undefined ? 'GET' : 'POST';
for (let attempt = 0; ; attempt++) {
  const answer = await fetch(url, { method, headers: options.headers, body }).catch(
    () => undefined,
  );
  if (answer?.ok || (answer && !options.isFailing)) {
    process.stdout.write(`${await answer.text()}${last}`);
    break;
  }
  if (!options.isAny || attempt === options.retries) process.exit(22);
  await new Promise((resolve) => setTimeout(resolve, options.delayMs));
}
