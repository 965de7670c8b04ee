/**
 * Addresses that webhooks may have, and networks that are one caller.
 *
 * The rules judge addresses, never names. A name is resolved first, and the judged address is the one that is connected
 * to (`platform/src/outgoing/vetted-connection.ts`), so a name cannot change its answer in between. URL parsing has
 * already turned every form of a literal (`0x7f.1`, `2130706433`, `[::1]`) into dotted decimal or hexadecimal groups.
 *
 * IPv6 is refused unless it is global unicast (2000::/3), so an unforeseen range is refused. Ranges that carry an IPv4
 * address inside are judged by that address as well: a private one does not become public by being written differently.
 *
 * Sources: IANA special-purpose address registries, and the metadata addresses of hosting companies.
 */

/** Kinds of refused addresses. `allowable` kinds may be opened by `WEBHOOK_ALLOW_PRIVATE_ADDRESSES`. */
export const ADDRESS_KINDS = {
  this_network: 'never',
  loopback: 'allowable',
  private: 'allowable',
  shared: 'allowable',
  link_local: 'allowable',
  metadata: 'never',
  protocol_assignment: 'never',
  documentation: 'allowable',
  benchmarking: 'allowable',
  multicast: 'never',
  reserved: 'never',
  ipv4_in_ipv6: 'allowable',
  nat64: 'allowable',
  six_to_four: 'allowable',
  teredo: 'never',
  not_an_address: 'never',
} as const satisfies Record<string, 'allowable' | 'never'>;

export type AddressKind = keyof typeof ADDRESS_KINDS;

interface AddressRule {
  readonly range: string;
  readonly kind: AddressKind;
  /** First bit of the IPv4 address inside, if the range carries one. */
  readonly ipv4AtBit?: number;
}

/** First match wins, so the narrower range stands before the wider one. */
export const ADDRESS_RULES: readonly AddressRule[] = [
  // Metadata and control services of hosting companies: credentials for the asking.
  { range: '169.254.169.254/32', kind: 'metadata' }, // AWS, Azure, Google, DigitalOcean, Hetzner, …
  { range: '169.254.170.2/32', kind: 'metadata' }, // AWS containers
  { range: '169.254.170.23/32', kind: 'metadata' }, // AWS EKS pods
  { range: '168.63.129.16/32', kind: 'metadata' }, // Azure platform, although in public space
  { range: '100.100.100.200/32', kind: 'metadata' }, // Alibaba
  { range: '192.0.0.192/32', kind: 'metadata' }, // Oracle, older
  { range: '169.254.0.23/32', kind: 'metadata' }, // Tencent
  { range: '169.254.10.10/32', kind: 'metadata' }, // Tencent
  { range: '169.254.42.42/32', kind: 'metadata' }, // Scaleway
  { range: 'fd00:ec2::254/128', kind: 'metadata' }, // AWS
  { range: 'fd00:ec2::23/128', kind: 'metadata' }, // AWS EKS pods
  { range: 'fd20:ce::254/128', kind: 'metadata' }, // Google
  { range: 'fd00:42::42/128', kind: 'metadata' }, // Scaleway
  { range: 'fd00:100::100:200/128', kind: 'metadata' }, // Alibaba
  { range: 'fd00:a9fe:a9fe::1/128', kind: 'metadata' }, // Akamai (Linode)
  { range: 'fd00:c1::a9fe:a9fe/128', kind: 'metadata' }, // Oracle
  { range: 'fe80::a9fe:a9fe/128', kind: 'metadata' }, // OpenStack, Akamai (Linode)

  { range: '0.0.0.0/8', kind: 'this_network' }, // RFC 791; many systems connect it to themselves
  { range: '10.0.0.0/8', kind: 'private' }, // RFC 1918
  { range: '100.64.0.0/10', kind: 'shared' }, // RFC 6598, carrier-grade NAT
  { range: '127.0.0.0/8', kind: 'loopback' }, // RFC 1122
  { range: '169.254.0.0/16', kind: 'link_local' }, // RFC 3927
  { range: '172.16.0.0/12', kind: 'private' }, // RFC 1918
  { range: '192.0.0.0/24', kind: 'protocol_assignment' }, // RFC 6890
  { range: '192.0.2.0/24', kind: 'documentation' }, // RFC 5737
  { range: '192.88.99.0/24', kind: 'six_to_four' }, // RFC 7526, relays
  { range: '192.168.0.0/16', kind: 'private' }, // RFC 1918
  { range: '198.18.0.0/15', kind: 'benchmarking' }, // RFC 2544
  { range: '198.51.100.0/24', kind: 'documentation' }, // RFC 5737
  { range: '203.0.113.0/24', kind: 'documentation' }, // RFC 5737
  { range: '224.0.0.0/4', kind: 'multicast' }, // RFC 5771
  { range: '240.0.0.0/4', kind: 'reserved' }, // RFC 1112, and broadcast

  { range: '::/128', kind: 'this_network' }, // RFC 4291, unspecified
  { range: '::1/128', kind: 'loopback' }, // RFC 4291
  { range: '::ffff:0:0/96', kind: 'ipv4_in_ipv6', ipv4AtBit: 96 }, // RFC 4291, mapped
  { range: '::ffff:0:0:0/96', kind: 'ipv4_in_ipv6', ipv4AtBit: 96 }, // RFC 2765, translated
  { range: '::/96', kind: 'ipv4_in_ipv6', ipv4AtBit: 96 }, // RFC 4291, compatible
  { range: '64:ff9b::/96', kind: 'nat64', ipv4AtBit: 96 }, // RFC 6052
  { range: '64:ff9b:1::/48', kind: 'nat64' }, // RFC 8215; each network chooses the place of the IPv4 address
  { range: '100::/64', kind: 'reserved' }, // RFC 6666, discard
  { range: 'fc00::/7', kind: 'private' }, // RFC 4193
  { range: 'fe80::/10', kind: 'link_local' }, // RFC 4291
  { range: 'fec0::/10', kind: 'private' }, // RFC 3879, site-local
  { range: 'ff00::/8', kind: 'multicast' }, // RFC 4291
  { range: '2001::/32', kind: 'teredo' }, // RFC 4380; the address inside is the client's, disguised
  { range: '2001:2::/48', kind: 'benchmarking' }, // RFC 5180
  { range: '2001:db8::/32', kind: 'documentation' }, // RFC 3849
  { range: '2001::/23', kind: 'protocol_assignment' }, // RFC 2928
  { range: '2002::/16', kind: 'six_to_four', ipv4AtBit: 16 }, // RFC 3056
  { range: '3fff::/20', kind: 'documentation' }, // RFC 9637
];

const GLOBAL_UNICAST = parseRange('2000::/3');
const MAPPED = parseRange('::ffff:0:0/96');

const PARSED_RULES = ADDRESS_RULES.map((rule) => ({ ...rule, parsed: parseRange(rule.range) }));

export type AddressVerdict =
  | { readonly outcome: 'allowed' }
  | { readonly outcome: 'refused'; readonly kind: AddressKind };

export interface AddressPolicy {
  /** Opens the `allowable` kinds. Metadata, multicast and the like stay closed. */
  readonly allowPrivate: boolean;
  /** Opens the `allowable` kinds within these networks; empty by default. */
  readonly allowedNetworks?: readonly AddressRange[];
}

/** Part of the address space. */
export interface AddressRange {
  readonly length: number;
  readonly prefix: Bits;
}

/** Reads `10.1.0.0/16` or `fd12::/48`, or one address; undefined if it is neither. */
export function parseNetwork(text: string): AddressRange | undefined {
  const [address = '', prefixLength, ...rest] = text.split('/');
  const bits = parseAddress(address);
  if (bits === undefined || address.includes('%') || rest.length > 0) return undefined;
  if (prefixLength === undefined) return { length: bits.length, prefix: bits };
  if (!/^(0|[1-9]\d{0,2})$/.test(prefixLength) || Number(prefixLength) > bits.length)
    return undefined;
  return { length: bits.length, prefix: bits.slice(0, Number(prefixLength)) };
}

/**
 * Judges one address, IPv4 in dotted decimal or IPv6 in any text form (a zone is ignored). A text that cannot be read
 * as an address is refused.
 */
export function judgeAddress(text: string, policy: AddressPolicy): AddressVerdict {
  const bits = parseAddress(text);
  return bits === undefined ? refused('not_an_address') : judgeBits(bits, policy);
}

/**
 * The kind of an address that no setting opens: metadata, multicast, reserved and the like. Undefined for a public
 * address, and for one that a worker's settings may open.
 */
export function whyNeverAllowed(text: string): AddressKind | undefined {
  const verdict = judgeAddress(text, { allowPrivate: true });
  return verdict.outcome === 'refused' ? verdict.kind : undefined;
}

/** As an address is kept, and looked for: lower case, and an IPv4 client of an IPv6 socket by its IPv4 address. */
export const canonicalAddress = (address: string): string =>
  address.toLowerCase().replace(/^::ffff:(?=\d+\.)/, '');

/**
 * The part of the address space that counts as one caller, as a name. For IPv4 it is the address, also if it is written
 * as an IPv6 one. For IPv6 it is the first 64 bits, because a host may take as many addresses of its network as it
 * likes (RFC 7934). A text that is no address is its own name.
 */
export function callerNetwork(text: string): string {
  const bits = parseAddress(text);
  if (bits === undefined || bits.length === 32) return text;
  if (bits.startsWith(MAPPED.prefix))
    return groupsOf(bits.slice(MAPPED.prefix.length), 8).map(String).join('.');
  const network = groupsOf(bits.slice(0, 64), 16).map((group) => group.toString(16));
  return `${network.join(':')}::/64`;
}

const groupsOf = (bits: Bits, length: number): number[] =>
  Array.from({ length: bits.length / length }, (_, place) =>
    Number.parseInt(bits.slice(place * length, (place + 1) * length), 2),
  );

/** An address as a string of bits, 32 or 128 of them: short, exact, and read once a connection. */
type Bits = string;

function judgeBits(bits: Bits, policy: AddressPolicy): AddressVerdict {
  const rule = PARSED_RULES.find(({ parsed }) => isWithin(bits, parsed));
  if (!rule) {
    const isPublic = bits.length === 32 || bits.startsWith(GLOBAL_UNICAST.prefix);
    return isPublic ? { outcome: 'allowed' } : refused('reserved');
  }
  if (ADDRESS_KINDS[rule.kind] === 'never') return refused(rule.kind);
  const isOpen =
    policy.allowPrivate || (policy.allowedNetworks ?? []).some((range) => isWithin(bits, range));
  if (!isOpen) return refused(rule.kind);
  if (rule.ipv4AtBit === undefined) return { outcome: 'allowed' };
  return judgeBits(bits.slice(rule.ipv4AtBit, rule.ipv4AtBit + 32), policy);
}

function isWithin(bits: Bits, range: AddressRange): boolean {
  return range.length === bits.length && bits.startsWith(range.prefix);
}

function refused(kind: AddressKind): AddressVerdict {
  return { outcome: 'refused', kind };
}

function parseRange(range: string): AddressRange {
  const [address = '', prefixLength = ''] = range.split('/');
  const bits = parseAddress(address) ?? '';
  return { length: bits.length, prefix: bits.slice(0, Number(prefixLength)) };
}

function parseAddress(text: string): Bits | undefined {
  return text.includes(':') ? parseIpv6(text) : parseIpv4(text);
}

function parseIpv4(text: string): Bits | undefined {
  const parts = text.split('.');
  if (parts.length !== 4) return undefined;
  let bits = '';
  for (const part of parts) {
    // No leading zeros: some systems read those as octal.
    if (!/^(0|[1-9]\d{0,2})$/.test(part) || Number(part) > 255) return undefined;
    bits += Number(part).toString(2).padStart(8, '0');
  }
  return bits;
}

function parseIpv6(text: string): Bits | undefined {
  const [address = ''] = text.split('%');
  const halves = address.split('::');
  if (halves.length > 2) return undefined;
  const [head, tail] = [halves[0] ?? '', halves[1]].map((half) => parseGroups(half ?? ''));
  if (head === undefined || tail === undefined) return undefined;
  const missing = 128 - head.length - tail.length;
  if (halves.length === 1 ? missing !== 0 : missing < 16) return undefined;
  return head + '0'.repeat(missing) + tail;
}

/** Groups between colons; the last may be a dotted IPv4 address. */
function parseGroups(text: string): Bits | undefined {
  if (text === '') return '';
  let bits = '';
  const groups = text.split(':');
  for (const [index, group] of groups.entries()) {
    if (group.includes('.') && index === groups.length - 1) {
      const ipv4 = parseIpv4(group);
      if (ipv4 === undefined) return undefined;
      bits += ipv4;
    } else {
      if (!/^[\da-f]{1,4}$/i.test(group)) return undefined;
      bits += Number.parseInt(group, 16).toString(2).padStart(16, '0');
    }
  }
  return bits;
}
