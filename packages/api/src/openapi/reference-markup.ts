/** HTML of the reference page: texts that are escaped, and tables. Pure. */

/** Cells are HTML. */
export const table = (head: readonly string[], rows: readonly (readonly string[])[]): string =>
  `<div class="wide" tabindex="0"><table><tr>${head.map((cell) => `<th scope="col">${cell}</th>`).join('')}</tr>${rows
    .map((row) => `<tr>${row.map((cell) => `<td>${cell}</td>`).join('')}</tr>`)
    .join('')}</table></div>`;

/** Escaped text with \`code\` as code. */
export const prose = (text = ''): string =>
  escape(text).replaceAll(/`([^`]+)`/g, '<code>$1</code>');

const ENTITIES: Readonly<Record<string, string>> = {
  '&': '&amp;',
  '<': '&lt;',
  '>': '&gt;',
  '"': '&quot;',
  "'": '&#39;',
};
/** A text in HTML. */
export const escape = (text: string): string =>
  text.replaceAll(/[&<>"']/g, (character) => ENTITIES[character] ?? '');
