/** Addresses of endpoints, in every notation. */
import {
  ADDRESS_KINDS,
  ADDRESS_RULES,
  judgeAddress,
} from '@sluice/domain/delivery/network-address';
import { describe, expect, test } from 'vitest';
import { ADDRESSES } from '../support/network-addresses.ts';

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
