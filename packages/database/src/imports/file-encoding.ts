/** File encodings that the runtime can decode. Labels are from the WHATWG Encoding Standard. */

/** True for a label of the standard, in any letter case: `windows-1252`, `latin1`, `shift_jis`. */
export function isKnownEncoding(label: string): boolean {
  try {
    return new TextDecoder(label).encoding !== '';
  } catch {
    return false;
  }
}
