/** The operator's terminal: one bash for a whole runbook, so that the variables of a block stay for the next one. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';

export interface OperatorShell {
  /**
   * The output of the commands on both channels, after the output of background commands since.
   *
   * @throws Error if they end badly or take minutes.
   */
  run(commands: string): Promise<string>;
  /** A variable of the shell. */
  read(name: string): Promise<string>;
  close(): void;
}

const DEADLINE_MS = 180_000;
const END = '--the end of these commands, with--';
const ENDED = new RegExp(`^(.*?)${END}(\\d+)\\n(.*)$`, 's');

/** @param directory - start of the runbooks' paths: the checkout. */
export function openOperatorShell(
  directory: string,
  environment: Readonly<Record<string, string | undefined>>,
): OperatorShell {
  const bash = spawn('bash', ['--noprofile', '--norc'], {
    cwd: directory,
    env: { ...environment },
    stdio: ['pipe', 'pipe', 'ignore'],
  });
  let output = '';
  bash.stdout.setEncoding('utf8').on('data', (text: string) => (output += text));
  // Node makes an output that it shares with other programs non-blocking. In a socket of ours their writes then fail under load.
  bash.stdin.write('exec > >(exec cat) 2>&1\nset -o pipefail\n');
  const shell: OperatorShell = {
    read(name) {
      output = '';
      return shell.run(`printf %s "$${name}"`);
    },
    async run(commands) {
      const deadline = AbortSignal.timeout(DEADLINE_MS);
      bash.stdin.write(`{\n${commands}\n}\nprintf '%s%s\\n' '${END}' "$?"\n`);
      for (;;) {
        const [, printed = '', code, later = ''] = ENDED.exec(output) ?? [];
        if (code !== undefined) {
          output = later;
          if (code === '0') return printed;
          throw new Error(`ended with ${code}:\n${printed}`);
        }
        await once(bash.stdout, 'data', { signal: deadline });
      }
    },
    close() {
      // With its input closed it ends; its running commands end by their own deadline.
      bash.stdin.end();
      bash.kill('SIGKILL');
    },
  };
  return shell;
}
