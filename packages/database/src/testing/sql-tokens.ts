/** SQL text → tokens, in groups by parentheses: as much of its grammar as a check of names needs. For tests. */

/** An identifier or keyword in lower case, a punctuation mark, `$1` for any parameter, `''` for any literal. */
export type SqlToken = string | readonly SqlToken[];

const TOKEN =
  /--[^\n]*|\/\*[\s\S]*?\*\/|\$(\w*)\$[\s\S]*?\$\1\$|e?'(?:[^']|'')*'|"((?:[^"]|"")+)"|\$\d+|[a-z_][\w$]*|\d[\w.]*|::|[<>=!~@#|&?*+/%^-]+|[(),.;[\]:]/gi;

/** Comments are left out, and so are casts: they name types. */
export function readTokens(text: string): SqlToken[] {
  const root: SqlToken[] = [];
  const open: SqlToken[][] = [root];
  for (const [token, , quoted] of text.matchAll(TOKEN)) {
    const group = open.at(-1) as SqlToken[];
    if (token.startsWith('--') || token.startsWith('/*')) continue;
    if (token === '(') {
      const inner: SqlToken[] = [];
      group.push(inner);
      open.push(inner);
    } else if (token === ')') {
      if (open.length > 1) open.pop();
    } else if (quoted !== undefined) group.push(quoted.toLowerCase());
    else if (/^(e?'|\$\w*\$[^$]*)/i.test(token) && !/^\$\d+$/.test(token)) group.push("''");
    else group.push(/^\$\d+$/.test(token) ? '$1' : token.toLowerCase());
  }
  return root;
}
