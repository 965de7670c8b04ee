/** The completion of bash, run by bash itself; of other shells only the text. */
import { execFileSync } from 'node:child_process';
import { Command, Option } from 'commander';
import { expect, test } from 'vitest';
import { completionScript } from '../src/commands/completion.ts';

function program(): Command {
  const sluice = new Command('sluice').option('--json', "it's exact");
  const webhooks = sluice.command('webhooks').description('all of them');
  webhooks.command('probe').addOption(new Option('--no-wait', 'not')).description('tries one');
  webhooks
    .command('list')
    .addOption(new Option('--order <order>', 'first').choices(['newest', 'oldest']))
    .description('lists');
  sluice.command('import').argument('<file>', 'to send').description('sends a file');
  sluice.command('status').description('who runs');
  return sluice;
}

/** Words that bash offers for the last word. */
function offered(...words: string[]): string[] {
  const script = `${completionScript(program(), 'bash')}
COMP_WORDS=(sluice ${words.map((word) => `'${word}'`).join(' ')}); COMP_CWORD=${words.length}
_sluice; printf '%s\\n' "\${COMPREPLY[@]}"`;
  return execFileSync('bash', ['-c', script], { encoding: 'utf8' })
    .split('\n')
    .filter((word) => word !== '');
}

test('bash offers commands, the commands of a command and its options, with options in any place', () => {
  expect(offered('')).toEqual(expect.arrayContaining(['webhooks', 'status', '--json']));
  expect(offered('st')).toEqual(['status']);
  expect(offered('webhooks', 'p')).toEqual(['probe']);
  expect(offered('--json', 'webhooks', 'probe', '--no')).toEqual(['--no-wait']);
  expect(offered('webhooks', 'probe', 'status', '--no')).toEqual(['--no-wait']);
  expect(offered('webhooks', 'probe', '--js')).toEqual(['--json']);
  expect(offered('webhooks', 'list', '--order', '')).toEqual(['newest', 'oldest']);
});

test('fish and zsh know the same words, with their quotes kept apart', () => {
  const fish = completionScript(program(), 'fish');
  expect(fish).toContain(`= "webhooks"' -a 'probe' -d 'tries one'`);
  expect(fish).toContain(String.raw`-l json -d 'it\'s exact'`);
  const zsh = completionScript(program(), 'zsh');
  expect(zsh).toMatch(/^#compdef sluice\n/);
  expect(zsh).toContain("'webhooks') candidates='probe list");
  // A command that takes a file gets the names of files.
  expect(fish).toMatch(/-F -n '[^']*= "import"'/);
  expect(zsh).toContain('|| _files');
});
