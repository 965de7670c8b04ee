/**
 * Realistic calls from a seed: a shop's visitors who look around, identify themselves, order, and now and
 * then unsubscribe. The same seed gives the same calls, so that two runs can be compared; only `messageId`
 * starts with a run's own prefix, or the second run would count as the first one's retries.
 */
import type { components } from '@sluice/client';
import { pick, seededRandom } from '@sluice/domain/values/seeded-random';

/** By the path under `/v1`. */
export type SampleCall =
  | { readonly type: 'identify'; readonly body: Schemas['PipelinesIdentify'] }
  | { readonly type: 'track'; readonly body: Schemas['PipelinesTrack'] }
  | { readonly type: 'page'; readonly body: Schemas['PipelinesPage'] };

type Schemas = components['schemas'];

const PLANS = ['free', 'pro', 'team'] as const;
const PRODUCTS = ['mug', 'lamp', 'desk', 'chair', 'shelf', 'rug'] as const;
const PATHS = ['/', '/pricing', '/docs', '/blog/launch', '/account', '/checkout'] as const;

/** Endless calls of `people` people. */
export function* sampleCalls(seed: number, people: number, runId: string): Generator<SampleCall> {
  const random = seededRandom(seed);
  for (let number = 1; ; number++) {
    // Few are active and many are not, as people are.
    const person = Math.floor(random() ** 2 * people);
    const base = { userId: `person-${person}`, messageId: `${runId}-${number}` };
    const kind = random();
    if (kind < 0.1) {
      const traits = {
        email: `person-${person}@example.com`,
        plan: pick(random, PLANS),
        unsubscribed: random() < 0.1,
      };
      yield { type: 'identify', body: { ...base, traits } };
    } else if (kind < 0.5) {
      const path = pick(random, PATHS);
      const properties = { path, url: `https://shop.example${path}` };
      yield { type: 'page', body: { ...base, name: path, properties } };
    } else {
      const properties = {
        product: pick(random, PRODUCTS),
        quantity: 1 + Math.floor(random() * 3),
        price: Math.round(random() * 20_000) / 100,
        currency: 'EUR',
      };
      const event =
        kind < 0.8 ? 'Product Viewed' : kind < 0.95 ? 'Product Added' : 'Order Completed';
      yield { type: 'track', body: { ...base, event, properties } };
    }
  }
}
