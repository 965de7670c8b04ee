/**
 * `sluice completion bash|zsh|fish`: the commands and options of this version as a script of a shell, so that a Tab starts no
 * program. Pure.
 */
import type { Command, Option } from 'commander';

const SHELLS = ['bash', 'zsh', 'fish'] as const;
export type Shell = (typeof SHELLS)[number];

/** The words that may follow a command. */
interface Place {
  /** `webhooks probe`; empty for the program. */
  readonly path: string;
  readonly words: readonly Word[];
  /** Its argument is a file. */
  readonly takesFile: boolean;
}

interface Word {
  readonly word: string;
  readonly text: string;
  /** Values that the option takes. */
  readonly choices?: readonly string[];
}

/** Of `program` with all its commands, without the name of the program in the paths. */
export function completionScript(program: Command, shell: Shell): string {
  const places = placesOf(program, '', []);
  switch (shell) {
    case 'bash':
      return bashScript(places);
    case 'zsh':
      // Its own `compadd`, by the same walk over the words.
      return `#compdef sluice\n${walk(places, '${(@)words[2,CURRENT-1]}', '${words[CURRENT-1]}')}\n  compadd -- \${=candidates} || _files\n}\ncompdef _sluice sluice ./sluice\n`;
    case 'fish':
      return fishScript(places);
  }
}

/** @param above - options of the commands above, which stand in any place. */
function placesOf(command: Command, path: string, above: readonly Word[]): Place[] {
  const help = command.createHelp();
  const commands = help.visibleCommands(command);
  const options = help.visibleOptions(command).map(optionWord);
  const own = [
    ...commands.map((each) => ({ word: each.name(), text: help.subcommandDescription(each) })),
    ...options,
    ...above.filter(({ word }) => !options.some((option) => option.word === word)),
    ...command.registeredArguments.flatMap(({ argChoices, description }) =>
      (argChoices ?? []).map((word) => ({ word, text: description })),
    ),
  ];
  const below = command.commands.flatMap((each) =>
    placesOf(each, path === '' ? each.name() : `${path} ${each.name()}`, [...options, ...above]),
  );
  const takesFile = command.registeredArguments.some((argument) => argument.name() === 'file');
  return [{ path, words: own, takesFile }, ...below];
}

const optionWord = ({ long, short, description, argChoices }: Option): Word => ({
  word: long ?? short ?? '',
  text: description,
  ...(argChoices && { choices: argChoices }),
});

const wordsOf = ({ words }: Place): string => words.map(({ word }) => word).join(' ');

/**
 * From the words before the one that is typed to the place; without the end of the function.
 *
 * @param last - the word before the one that is typed: an option, perhaps, whose values are offered.
 */
function walk(places: readonly Place[], typed: string, last: string): string {
  const paths = places.filter(({ path }) => path !== '').map(({ path }) => `'${path}'`);
  return [
    '_sluice() {',
    "  local place='' candidates='' word",
    `  for word in "${typed}"; do`,
    '    case "${place:+$place }$word" in',
    `      ${paths.join('|')}) place="\${place:+$place }$word" ;;`,
    '    esac',
    '  done',
    '  case "$place" in',
    ...places.map((place) => `    '${place.path}') candidates='${wordsOf(place)}' ;;`),
    '  esac',
    `  case "$place:${last}" in`,
    ...places.flatMap(({ path, words }) =>
      words.flatMap(({ word, choices }) =>
        choices ? [`    '${path}:${word}') candidates='${choices.join(' ')}' ;;`] : [],
      ),
    ),
    '  esac',
  ].join('\n');
}

const bashScript = (places: readonly Place[]): string =>
  `${walk(places, '${COMP_WORDS[@]:1:COMP_CWORD-1}', '${COMP_WORDS[COMP_CWORD-1]}')}
  COMPREPLY=($(compgen -W "$candidates" -- "\${COMP_WORDS[COMP_CWORD]}"))
}
complete -o default -F _sluice sluice ./sluice
`;

function fishScript(places: readonly Place[]): string {
  const quoted = (text: string): string => `'${text.replaceAll(/(['\\])/g, String.raw`\$1`)}'`;
  const paths = places.filter(({ path }) => path !== '').map(({ path }) => quoted(path));
  const lines = places.flatMap(({ path, words, takesFile }) =>
    words.map(({ word, text, choices }) => {
      const files = takesFile ? '-F' : '-f';
      const values = choices ? `-x -a ${quoted(choices.join(' '))}` : files;
      const what = word.startsWith('--') ? `-l ${word.slice(2)}` : `-a ${quoted(word)}`;
      return `complete -c sluice ${values} -n 'test "$(__sluice_place)" = ${JSON.stringify(path)}' ${what} -d ${quoted(text)}`;
    }),
  );
  return `function __sluice_place
  set -l place
  for word in (commandline -opc)[2..]
    if contains -- (string trim "$place $word") ${paths.join(' ')}
      set place (string trim "$place $word")
    end
  end
  echo -n $place
end
${lines.join('\n')}
`;
}

export function addCompletionCommand(program: Command, write: (script: string) => void): void {
  const completion = program
    .command('completion')
    .description('prints the completion script of a shell: source <(sluice completion bash)');
  for (const shell of SHELLS)
    completion
      .command(shell)
      .description(`for ${shell}`)
      .action(() => write(completionScript(program, shell)));
}
