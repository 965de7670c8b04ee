/** A replay that is waited for: shown until it has ended, and left alone when the wait ends. */
import { expect, test } from 'vitest';
import { followReplay } from '../src/webhooks/replay-commands.ts';
import { collectingTerminal } from './collecting-terminal.ts';

const replay = (delivered: number, state: 'running' | 'done' = 'running') => ({
  id: 7,
  state,
  failing: false,
  total: 4,
  delivered,
  abandoned: 1,
});

function follow(states: readonly ReturnType<typeof replay>[][], stopAfter = Infinity) {
  const shown: object[] = [];
  const stopping = new AbortController();
  let asked = 0;
  const followed = followReplay(
    {
      list: async () => states[Math.min(asked++, states.length - 1)] ?? [],
      terminal: collectingTerminal('table', {
        progress: (_, counted) => void shown.push(counted),
      }),
      pause: async () => {
        if (asked >= stopAfter) stopping.abort();
      },
      signal: stopping.signal,
    },
    7,
  );
  return { followed, shown };
}

test('it is shown until it has ended', async () => {
  const other = { ...replay(0), id: 8 };
  const { followed, shown } = follow([[other, replay(0)], [replay(2)], [replay(3, 'done'), other]]);
  expect(await followed).toEqual(replay(3, 'done'));
  const counted = { progress: 'replay 7', unit: 'deliveries', all: 4 };
  expect(shown).toEqual([1, 3, 4].map((done) => ({ ...counted, done })));
});

test('Ctrl-C ends the waiting alone', async () => {
  const { followed } = follow([[replay(0)]], 2);
  expect(await followed).toEqual(replay(0));
});

test('one that is gone is an error', async () => {
  await expect(follow([[]]).followed).rejects.toThrow('replay 7 is not listed any more');
});
