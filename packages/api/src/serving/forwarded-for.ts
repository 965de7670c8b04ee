/**
 * `X-Forwarded-For` as addresses alone. Some proxies write the caller's port too (`203.0.113.9:51324`,
 * `[2001:db8::1]:51324`: Azure's Application Gateway, and AWS if it preserves client ports). With the port, each
 * connection would look like another caller: limits would not hold, and allow lists would not match.
 *
 * @param text - the header. An entry that is no address with a port stays as it came. Pure.
 */
export const withoutPorts = (text: string): string => text.split(',').map(withoutPort).join(',');

function withoutPort(entry: string): string {
  const [, inBrackets, dotted] =
    /^ *(?:\[([\da-f:.]+)\]|(\d+\.\d+\.\d+\.\d+))(?::\d{1,5})? *$/i.exec(entry) ?? [];
  return inBrackets ?? dotted ?? entry;
}
