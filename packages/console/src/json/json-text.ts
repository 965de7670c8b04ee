/** JSON that was typed. Pure. */

/** @returns its value, null if the text is empty; or in words why it is no JSON. */
export function jsonOf(text: string): { readonly value: unknown; readonly problem?: string } {
  if (text.trim() === '') return { value: null };
  try {
    return { value: JSON.parse(text) as unknown };
  } catch (error) {
    return { value: null, problem: `is not JSON: ${(error as Error).message}` };
  }
}
