/**
 * Emails of common characters alone, which are emails by `domain/src/parsing/identifiers.ts` too.
 *
 * AssemblyScript. Part of `fast-track.ts`.
 */

/** Letters, digits and `.+-_`, before `at` and behind it labels of letters, digits and `-`, the last of two or more. */
export function isPlainEmail(start: i32, at: i32, end: i32): bool {
  if (at == start) return false;
  for (let index = start; index < at; index++) {
    const byte = load<u8>(index);
    if (!isLabelByte(byte) && byte != 0x2e && byte != 0x2b && byte != 0x5f) return false;
  }
  let label = at + 1;
  for (let index = label; index < end; index++) {
    const byte = load<u8>(index);
    if (byte == 0x2e) {
      if (index == label) return false;
      label = index + 1;
    } else if (!isLabelByte(byte)) {
      return false;
    }
  }
  return label > at + 1 && end - label >= 2;
}

function isLabelByte(byte: u8): bool {
  return <u8>((byte | 0x20) - 0x61) < 26 || <u8>(byte - 0x30) < 10 || byte == 0x2d;
}
