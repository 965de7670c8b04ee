import { expect, test } from 'vitest';
import { templateOf } from '../../src/trace-provider-requests.ts';

test.each([
  ['/v1/customers', '/v1/customers'],
  ['/v1/customers/cus_N1xkd', '/v1/customers/{id}'],
  ['/v1/subscription_items/si_9?expand=a', '/v1/subscription_items/{id}'],
  ['/v1/invoices/in_0A/finalize', '/v1/invoices/{id}/finalize'],
  ['/v1/customers?email=ada%40example.com', '/v1/customers'],
  ['/v1/customers/ada%40example.com', '/v1/customers/{id}'],
])('%s is named %s', (path, template) => {
  expect(templateOf(path)).toBe(template);
});
