/**
 * Addresses that a token may be used from: well-formed CIDR blocks and single addresses. An empty list allows any
 * address. Pure.
 */
import { BlockList, isIPv6 } from 'node:net';

export function isAllowedFrom(ip: string, allowlist: readonly string[]): boolean {
  return allowlist.length === 0 || createAddressCheck(allowlist)(ip);
}

/** @returns whether an address is in one of the blocks. */
export function createAddressCheck(blocks: readonly string[]): (ip: string) => boolean {
  const list = listOf(blocks.map(parse));
  return (ip) => list.check(ip, familyOf(ip));
}

/**
 * True if one allowlist admits no address that the other keeps out. Each block must lie in a single block of the other,
 * of the same family: blocks that cover it only together do not count.
 */
export function isWithinAllowlist(inner: readonly string[], outer: readonly string[]): boolean {
  if (outer.length === 0) return true;
  const around = outer.map(parse);
  const isWithin = (block: Block): boolean =>
    around.some(
      (wider) =>
        wider.family === block.family &&
        wider.prefix <= block.prefix &&
        listOf([wider]).check(block.address, block.family),
    );
  return inner.length > 0 && inner.map(parse).every(isWithin);
}

interface Block {
  readonly address: string;
  readonly prefix: number;
  readonly family: 'ipv4' | 'ipv6';
}

function parse(text: string): Block {
  const [address = '', prefix] = text.split('/');
  const family = familyOf(address);
  return { address, family, prefix: Number(prefix ?? (family === 'ipv6' ? 128 : 32)) };
}

const familyOf = (address: string): Block['family'] => (isIPv6(address) ? 'ipv6' : 'ipv4');

function listOf(blocks: readonly Block[]): BlockList {
  const list = new BlockList();
  for (const { address, prefix, family } of blocks) list.addSubnet(address, prefix, family);
  return list;
}
