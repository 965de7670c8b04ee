/** Networks that an operator allows although their addresses are private. */
import {
  judgeAddress,
  parseNetwork,
  type AddressRange,
} from '@sluice/domain/delivery/network-address';
import { describe, expect, test } from 'vitest';

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
