/** Reads a Dockerfile as far as ours needs: stages, and in each the steps in order. Pure. */

export type DockerfileStep =
  | { readonly step: 'workdir'; readonly path: string }
  | {
      readonly step: 'copy';
      readonly from: string | undefined;
      readonly sources: string[];
      readonly target: string;
    }
  | { readonly step: 'run'; readonly command: string }
  | { readonly step: 'environment'; readonly variables: Readonly<Record<string, string>> }
  | { readonly step: 'user'; readonly name: string }
  | { readonly step: 'volume'; readonly paths: string[] }
  | { readonly step: 'entrypoint'; readonly words: string[] };

export interface DockerfileStage {
  readonly base: string;
  readonly name: string | undefined;
  readonly steps: readonly DockerfileStep[];
}

/** Instructions without effect on the running processes. */
const WITHOUT_EFFECT: ReadonlySet<string> = new Set(['EXPOSE', 'CMD']);

/** @throws Error for an instruction that it does not know: to leave one out would try another image. */
export function readDockerfile(text: string): DockerfileStage[] {
  const stages: { base: string; name: string | undefined; steps: DockerfileStep[] }[] = [];
  for (const line of instructionsOf(text)) {
    const [, word = '', rest = ''] = /^(\w+)\s+(.*)$/s.exec(line) ?? [];
    const name = word.toUpperCase();
    if (name === 'FROM') {
      const [base = '', , alias] = rest.split(/\s+/);
      stages.push({ base, name: alias, steps: [] });
      continue;
    }
    if (WITHOUT_EFFECT.has(name)) continue;
    const stage = stages.at(-1);
    if (!stage) throw new Error(`${name} stands before the first FROM`);
    stage.steps.push(stepOf(name, rest.trim()));
  }
  return stages;
}

/** Without comments; a line that ends in a backslash goes on. */
function instructionsOf(text: string): string[] {
  const lines = text.split('\n').filter((line) => !/^\s*#/.test(line));
  return lines
    .join('\n')
    .replaceAll(/\\\n/g, ' ')
    .split('\n')
    .map((line) => line.trim())
    .filter((line) => line !== '');
}

function stepOf(name: string, rest: string): DockerfileStep {
  switch (name) {
    case 'WORKDIR':
      return { step: 'workdir', path: rest };
    case 'COPY': {
      const [, from, list = ''] = /^(?:--from=(\S+)\s+)?(.*)$/s.exec(rest) ?? [];
      const words = list.split(/\s+/);
      return { step: 'copy', from, sources: words.slice(0, -1), target: words.at(-1) ?? '' };
    }
    case 'RUN':
      return { step: 'run', command: rest };
    case 'ENV':
      return { step: 'environment', variables: variablesOf(rest) };
    case 'USER':
      return { step: 'user', name: rest };
    case 'VOLUME':
      return { step: 'volume', paths: rest.split(/\s+/) };
    case 'ENTRYPOINT':
      return { step: 'entrypoint', words: JSON.parse(rest) as string[] };
    default:
      throw new Error(`the instruction ${name} is not known here`);
  }
}

function variablesOf(text: string): Record<string, string> {
  const pairs = text.split(/\s+/).map((pair) => {
    const [, name = '', value = ''] = /^([^=]+)=(.*)$/.exec(pair) ?? [];
    if (name === '') throw new Error(`ENV ${pair} is not name=value`);
    return [name, value] as const;
  });
  return Object.fromEntries(pairs);
}
