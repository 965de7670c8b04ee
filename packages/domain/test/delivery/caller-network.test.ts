/** Networks by which callers are counted. */
import { callerNetwork, canonicalAddress } from '@sluice/domain/delivery/network-address';
import { describe, expect, test } from 'vitest';

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
