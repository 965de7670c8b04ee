/** What is sold where no catalogue is given: enough of everything to try each rule. */
import type { z } from 'zod';
import type { catalogueFile } from './read-catalogue.ts';

export const DEFAULT_CATALOGUE: z.input<typeof catalogueFile> = {
  version: 1,
  currency: 'usd',
  plans: [
    {
      id: 'builder',
      name: 'Builder',
      tier: 'builder',
      interval: 'month',
      amount: 0,
      price_id: 'price_builder_month',
      included: {},
      features: ['1 workspace'],
    },
    {
      id: 'essentials_month',
      name: 'Essentials',
      tier: 'essentials',
      interval: 'month',
      amount: 10_000,
      price_id: 'price_essentials_month',
      included: { llm: 1_000, builder: 100, inbox_previews: 20 },
      features: ['5 workspaces', 'Inbox previews'],
    },
    {
      id: 'premium_month',
      name: 'Premium',
      tier: 'premium',
      interval: 'month',
      amount: 100_000,
      price_id: 'price_premium_month',
      included: { llm: 10_000, builder: 1_000, inbox_previews: 200 },
      features: ['Any number of workspaces', 'Inbox previews', 'Single sign-on'],
    },
    {
      id: 'premium_year',
      name: 'Premium',
      tier: 'premium',
      interval: 'year',
      amount: 1_080_000,
      price_id: 'price_premium_year',
      included: { llm: 10_000, builder: 1_000, inbox_previews: 200 },
      features: ['Any number of workspaces', 'Inbox previews', 'Single sign-on'],
    },
  ],
  addons: [
    {
      sku: 'price_addon_ip_month',
      addon: 'dedicated_ip',
      name: 'Dedicated IP address',
      interval: 'month',
      amount: 6_000,
    },
    {
      sku: 'price_addon_ip_year',
      addon: 'dedicated_ip',
      name: 'Dedicated IP address',
      interval: 'year',
      amount: 64_800,
    },
    {
      sku: 'price_addon_ip_2024',
      addon: 'dedicated_ip',
      name: 'Dedicated IP address',
      interval: 'month',
      amount: 4_500,
      retired: true,
    },
    {
      sku: 'price_addon_sms_month',
      addon: 'sms',
      name: 'SMS',
      interval: 'month',
      amount: 2_500,
    },
  ],
  packs: [
    { id: 'pack_100', quantity: 100, amount: 2_000, expires_after_days: 365 },
    { id: 'pack_500', quantity: 500, amount: 9_000, expires_after_days: 365 },
    { id: 'pack_1000', quantity: 1_000, amount: 16_000, expires_after_days: 365 },
    { id: 'pack_5000', quantity: 5_000, amount: 70_000, expires_after_days: 365 },
  ],
  credits: {
    llm: { multiple: 1_000, quantity_max: 1_000_000, amount_per_multiple: 1_000 },
    builder: { multiple: 100, quantity_max: 100_000, amount_per_multiple: 1_500 },
  },
  coupons: [
    { code: 'WELCOME20', name: '20 % off', percent_off: 20 },
    { code: 'FIFTY', name: '$50 off', amount_off: 5_000 },
  ],
};
