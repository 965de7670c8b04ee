/** `docs/reference/command-line.md`: the help of `sluice` and of each of its commands, as the program prints it. */
import { page } from './markdown.ts';

/** Loaded by its address: its types need Node alone, and the scripts have the types of browsers, too. */
const PROGRAM = new URL('../../packages/command-line/src/program.ts', import.meta.url).href;

/** The part of a command of commander that this page uses. */
interface Command {
  readonly parent: Command | null;
  name(): string;
  createHelp(): { visibleCommands(command: Command): readonly Command[] };
  configureHelp(options: { readonly helpWidth: number }): Command;
  helpInformation(): string;
}

/** Characters of a line of help. */
const WIDTH = 100;

const INTRODUCTION = `\`./sluice\` runs from a checkout and installs missing packages. In the image the program is on the \`PATH\`. Its commands find a
running \`npm start\` of the checkout by themselves. Give keys in the environment (\`SLUICE_KEY\`) rather than as options, because
other users of the machine can read the words of a command.

| exit code | meaning |
|---|---|
| 0 | done |
| 1 | refused, or the check of \`status\`, \`verify\` or \`secrets lost\` found a problem |
| 2 | a wrong word |
| 3 | the service cannot be reached |
| 4 | the key is unknown, or does not have the right |
| 128 and more | ended by a signal |`;

/** The words that lead to a command: `sluice webhooks probe`. */
const wordsOf = (command: Command): string =>
  command.parent ? `${wordsOf(command.parent)} ${command.name()}` : command.name();

/** The command and those below it, without `help`, in the order of the program's help. */
function commandsOf(command: Command): Command[] {
  const below = command
    .createHelp()
    .visibleCommands(command)
    .filter((each) => each.name() !== 'help');
  return [command, ...below.flatMap(commandsOf)];
}

/** The page as Markdown. */
export async function commandLinePage(): Promise<string> {
  const { createProgram } = (await import(PROGRAM)) as {
    readonly createProgram: (deps: object) => Command;
  };
  // Help is all that is asked of the program, so no other effect is used.
  const program = createProgram({
    version: '',
    profilesFile: '~/.config/sluice/profiles.json',
    signal: new AbortController().signal,
  });
  const sections = commandsOf(program).map((command) => {
    const help = command.configureHelp({ helpWidth: WIDTH }).helpInformation().trimEnd();
    return `## ${wordsOf(command)}\n\n\`\`\`text\n${help}\n\`\`\``;
  });
  return page('Command line', INTRODUCTION, ...sections);
}
