import {
  ADDRESS_KINDS,
  ADDRESS_RULES,
  callerNetwork,
  canonicalAddress,
  judgeAddress,
  parseNetwork,
  type AddressKind,
  type AddressRange,
} from '@sluice/domain/delivery/network-address';
import { describe, expect, test } from 'vitest';

/** Address as URL parsing and name look-ups give it → its kind; null for an address that may be sent to. */
const ADDRESSES: Readonly<Record<string, AddressKind | null>> = {
  // public
  '1.1.1.1': null,
  '8.8.8.8': null,
  '9.255.255.255': null,
  '11.0.0.0': null,
  '100.63.255.255': null,
  '100.128.0.0': null,
  '126.255.255.255': null,
  '128.0.0.0': null,
  '168.63.129.15': null,
  '169.253.255.255': null,
  '169.255.0.0': null,
  '172.15.255.255': null,
  '172.32.0.0': null,
  '191.255.255.255': null,
  '192.0.1.0': null,
  '192.0.3.0': null,
  '192.88.98.255': null,
  '192.88.100.0': null,
  '192.167.255.255': null,
  '192.169.0.0': null,
  '198.17.255.255': null,
  '198.20.0.0': null,
  '198.51.99.255': null,
  '198.51.101.0': null,
  '203.0.112.255': null,
  '203.0.114.0': null,
  '223.255.255.255': null,
  '2606:4700:4700::1111': null,
  '2001:4860:4860::8888': null,
  '2001:200::1': null,
  '2003::1': null,
  '2a00:1450:4001:82a::200e': null,
  '3ffe::1': null,
  '3fff:1000::1': null,
  // this network
  '0.0.0.0': 'this_network',
  '0.0.0.1': 'this_network',
  '0.255.255.255': 'this_network',
  '::': 'this_network',
  '0:0:0:0:0:0:0:0': 'this_network',
  // loopback
  '127.0.0.1': 'loopback',
  '127.0.0.2': 'loopback',
  '127.1.2.3': 'loopback',
  '127.255.255.255': 'loopback',
  '::1': 'loopback',
  '0:0:0:0:0:0:0:1': 'loopback',
  '0000:0000:0000:0000:0000:0000:0000:0001': 'loopback',
  // private
  '10.0.0.0': 'private',
  '10.0.0.1': 'private',
  '10.255.255.255': 'private',
  '172.16.0.0': 'private',
  '172.16.0.1': 'private',
  '172.31.255.255': 'private',
  '192.168.0.0': 'private',
  '192.168.1.1': 'private',
  '192.168.255.255': 'private',
  'fc00::': 'private',
  'fc00::1': 'private',
  'fd12:3456:789a::1': 'private',
  'FD12:3456:789A::1': 'private',
  'fdff:ffff:ffff:ffff:ffff:ffff:ffff:ffff': 'private',
  'fec0::1': 'private',
  // shared
  '100.64.0.0': 'shared',
  '100.64.0.1': 'shared',
  '100.127.255.255': 'shared',
  // link-local
  '169.254.0.0': 'link_local',
  '169.254.1.1': 'link_local',
  '169.254.255.255': 'link_local',
  'fe80::1': 'link_local',
  'fe80::1%eth0': 'link_local',
  'fe80::1%25eth0': 'link_local',
  'febf:ffff::1': 'link_local',
  // metadata
  '169.254.169.254': 'metadata',
  '169.254.170.2': 'metadata',
  '169.254.170.23': 'metadata',
  '168.63.129.16': 'metadata',
  '100.100.100.200': 'metadata',
  '192.0.0.192': 'metadata',
  'fd00:ec2::254': 'metadata',
  'fd00:0ec2:0:0:0:0:0:254': 'metadata',
  'fd00:ec2::23': 'metadata',
  'fd20:ce::254': 'metadata',
  '169.254.0.23': 'metadata',
  '169.254.10.10': 'metadata',
  '169.254.42.42': 'metadata',
  'fd00:42::42': 'metadata',
  'fd00:100::100:200': 'metadata',
  'fd00:a9fe:a9fe::1': 'metadata',
  'fd00:c1::a9fe:a9fe': 'metadata',
  'fe80::a9fe:a9fe': 'metadata',
  'fe80::a9fe:a9fe%eth0': 'metadata',
  // protocol assignments
  '192.0.0.1': 'protocol_assignment',
  '192.0.0.171': 'protocol_assignment',
  '2001:1::1': 'protocol_assignment',
  '2001:20::1': 'protocol_assignment',
  '2001:1ff:ffff::': 'protocol_assignment',
  // documentation
  '192.0.2.1': 'documentation',
  '198.51.100.1': 'documentation',
  '203.0.113.255': 'documentation',
  '2001:db8::1': 'documentation',
  '2001:0DB8::1': 'documentation',
  '3fff::1': 'documentation',
  '3fff:fff:ffff::1': 'documentation',
  // benchmarking
  '198.18.0.1': 'benchmarking',
  '198.19.255.255': 'benchmarking',
  '2001:2::1': 'benchmarking',
  // multicast
  '224.0.0.1': 'multicast',
  '239.255.255.255': 'multicast',
  'ff02::1': 'multicast',
  'ff0e::1': 'multicast',
  // reserved
  '240.0.0.1': 'reserved',
  '255.255.255.255': 'reserved',
  '100::1': 'reserved',
  '200::1': 'reserved',
  '1000::1': 'reserved',
  '1fff:ffff::1': 'reserved',
  '4000::1': 'reserved',
  '5f00::1': 'reserved',
  'e000::1': 'reserved',
  // IPv4 inside IPv6
  '::ffff:127.0.0.1': 'ipv4_in_ipv6',
  '::ffff:7f00:1': 'ipv4_in_ipv6',
  '0:0:0:0:0:ffff:7f00:1': 'ipv4_in_ipv6',
  '::ffff:8.8.8.8': 'ipv4_in_ipv6',
  '::ffff:a9fe:a9fe': 'ipv4_in_ipv6',
  '::ffff:0:7f00:1': 'ipv4_in_ipv6',
  '::7f00:1': 'ipv4_in_ipv6',
  '::127.0.0.1': 'ipv4_in_ipv6',
  '::2': 'ipv4_in_ipv6',
  // NAT64, 6to4, Teredo
  '64:ff9b::7f00:1': 'nat64',
  '64:ff9b::8.8.8.8': 'nat64',
  '64:ff9b:1::1': 'nat64',
  '64:ff9b:1:fffe::a00:1': 'nat64',
  '2002::1': 'six_to_four',
  '2002:7f00:1::': 'six_to_four',
  '2002:a9fe:a9fe::1': 'six_to_four',
  '2002:808:808::1': 'six_to_four',
  '192.88.99.1': 'six_to_four',
  '2001::1': 'teredo',
  '2001:0:53aa:64c:0:80ff:fffe:1': 'teredo',
  // no addresses
  '': 'not_an_address',
  localhost: 'not_an_address',
  '127.1': 'not_an_address',
  '0x7f.0.0.1': 'not_an_address',
  '0177.0.0.1': 'not_an_address',
  '2130706433': 'not_an_address',
  '1.2.3.256': 'not_an_address',
  '1.2.3.4.5': 'not_an_address',
  '1.2.3.': 'not_an_address',
  ' 1.2.3.4': 'not_an_address',
  '１.1.1.1': 'not_an_address',
  ':': 'not_an_address',
  ':::': 'not_an_address',
  '1::2::3': 'not_an_address',
  '1:2:3:4:5:6:7': 'not_an_address',
  '1:2:3:4:5:6:7:8:9': 'not_an_address',
  '1:2:3:4:5:6:7:8::': 'not_an_address',
  '2606::g': 'not_an_address',
  '2606::12345': 'not_an_address',
  '::1.2.3.4.5': 'not_an_address',
};

describe('by default', () => {
  test.each(Object.entries(ADDRESSES))('%s is judged as %s', (address, kind) => {
    const expected = kind === null ? { outcome: 'allowed' } : { outcome: 'refused', kind };
    expect(judgeAddress(address, { allowPrivate: false })).toEqual(expected);
  });

  test('the first address of every rule is refused, also if another rule is narrower', () => {
    for (const { range } of ADDRESS_RULES) {
      const [address = ''] = range.split('/');
      expect({ range, ...judgeAddress(address, { allowPrivate: false }) }).toMatchObject({
        range,
        outcome: 'refused',
      });
    }
  });

  test('the table above has a case of every kind', () => {
    expect(new Set(Object.values(ADDRESSES))).toEqual(
      new Set([null, ...Object.keys(ADDRESS_KINDS)]),
    );
  });
});

describe('every way to write a literal', () => {
  // URL parsing makes these spellings plain on the way.
  test.each([
    ['http://127.1/', 'loopback'],
    ['http://0x7f.1/', 'loopback'],
    ['http://0x7f000001/', 'loopback'],
    ['http://2130706433/', 'loopback'],
    ['http://017700000001/', 'loopback'],
    ['http://0177.0.0.1/', 'loopback'],
    ['http://127.0.0.1./', 'loopback'],
    ['http://１２７.０.０.１/', 'loopback'],
    ['http://127。0。0。1/', 'loopback'],
    ['http://%31%32%37.0.0.1/', 'loopback'],
    ['http://public.example@127.0.0.1/', 'loopback'],
    ['http://0/', 'this_network'],
    ['http://0xa9fea9fe/', 'metadata'],
    ['http://0251.0376.0251.0376/', 'metadata'],
    ['http://169.254.43518/', 'metadata'],
    ['http://10.1/', 'private'],
    ['http://[::1]/', 'loopback'],
    ['http://[0:0::0:1]/', 'loopback'],
    ['http://[::ffff:127.0.0.1]/', 'ipv4_in_ipv6'],
    ['http://[::FFFF:7F00:1]/', 'ipv4_in_ipv6'],
    ['http://[64:ff9b::127.0.0.1]/', 'nat64'],
    ['http://[fd00:EC2::254]/', 'metadata'],
  ])('%s is refused as %s', (url, kind) => {
    const hostname = new URL(url).hostname.replace(/^\[|\]$/g, '');
    expect(judgeAddress(hostname, { allowPrivate: false })).toEqual({ outcome: 'refused', kind });
  });
});

describe('if private addresses are allowed', () => {
  test('exactly the allowable kinds are opened, unless they carry an address of another kind', () => {
    for (const [address, kind] of Object.entries(ADDRESSES)) {
      const verdict = judgeAddress(address, { allowPrivate: true });
      if (kind === null) expect(verdict).toEqual({ outcome: 'allowed' });
      else if (ADDRESS_KINDS[kind] === 'never')
        expect(verdict).toEqual({ outcome: 'refused', kind });
    }
    for (const address of [
      '127.0.0.1',
      '10.0.0.1',
      '::1',
      'fd12::1',
      '100.64.0.1',
      '::ffff:127.0.0.1',
      '64:ff9b::a00:1',
      '2002:a00:1::1',
    ]) {
      expect(judgeAddress(address, { allowPrivate: true })).toEqual({ outcome: 'allowed' });
    }
  });

  test.each([
    '::ffff:169.254.169.254',
    '::ffff:a9fe:a9fe',
    '64:ff9b::a9fe:a9fe',
    '2002:a9fe:a9fe::1',
    '::169.254.169.254',
  ])('metadata stays closed, also as %s', (address) => {
    expect(judgeAddress(address, { allowPrivate: true })).toEqual({
      outcome: 'refused',
      kind: 'metadata',
    });
  });
});

describe('a list of allowed networks', () => {
  const networks = (...texts: string[]) => texts.map((text) => parseNetwork(text) as AddressRange);

  test.each<[string, string, boolean]>([
    ['10.1.2.3', '10.1.0.0/16', true],
    ['10.2.0.1', '10.1.0.0/16', false],
    ['192.168.7.7', '192.168.7.7', true],
    ['192.168.7.8', '192.168.7.7', false],
    ['fd12:3456::1', 'fd12::/16', true],
    ['fd13::1', 'fd12::/16', false],
    // The list has the private addresses that are open; another way to write one is not in it.
    ['::ffff:10.1.2.3', '10.1.0.0/16', false],
    // Never, with any list.
    ['169.254.169.254', '169.254.0.0/16', false],
    ['fd00:ec2::254', 'fd00::/8', false],
    ['255.255.255.255', '0.0.0.0/0', false],
    ['127.0.0.1', '0.0.0.0/0', true],
    ['93.184.216.34', '10.0.0.0/8', true],
  ])('judges %s with %s on it', (address, network, isAllowed) => {
    const policy = { allowPrivate: false, allowedNetworks: networks(network) };
    expect(judgeAddress(address, policy).outcome === 'allowed').toBe(isAllowed);
  });

  test.each([
    '',
    '10.0.0.0/33',
    '10.0.0.0/-1',
    '10.0.0/8',
    'fd00::/129',
    '10.0.0.0/8/8',
    '10.0.0.0/08',
    'lan',
  ])('has no place for %j', (text) => {
    expect(parseNetwork(text)).toBeUndefined();
  });
});

// Security: a host has 2^64 addresses of IPv6, so a limit that counts each by itself has no effect.
test.each([
  ['203.0.113.7', '203.0.113.7'],
  ['::ffff:203.0.113.7', '203.0.113.7'],
  ['::FFFF:203.0.113.7', '203.0.113.7'],
  ['2001:DB8::1', '2001:db8::1'],
  ['::ffff:cb00:7107', '::ffff:cb00:7107'],
  ['Unknown', 'unknown'],
])('%s is kept as %s', (address, kept) => expect(canonicalAddress(address)).toBe(kept));

describe('a caller counts', () => {
  test.each([
    ['203.0.113.7', '203.0.113.7'],
    ['::ffff:203.0.113.7', '203.0.113.7'],
    ['::FFFF:cb00:7107', '203.0.113.7'],
    ['2001:db8:1:2::1', '2001:db8:1:2::/64'],
    ['2001:db8:1:2:ffff:ffff:ffff:ffff', '2001:db8:1:2::/64'],
    ['2001:0DB8:0001:0002::', '2001:db8:1:2::/64'],
    ['fe80::1%eth0', 'fe80:0:0:0::/64'],
    ['::1', '0:0:0:0::/64'],
  ])('%s as %s', (address, network) => expect(callerNetwork(address)).toBe(network));

  test('the next network as another', () =>
    expect(callerNetwork('2001:db8:1:3::1')).not.toBe(callerNetwork('2001:db8:1:2::1')));

  test.each(['', 'unknown', '1.2.3', '203.0.113.7:5678'])('%j as itself', (text) =>
    expect(callerNetwork(text)).toBe(text),
  );
});
