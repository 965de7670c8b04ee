/** Event types that a link to the portal allows. */
import type { PortalGrant } from '@sluice/database/webhooks/portal-links';
import { expect, test } from 'vitest';
import { newWebhook } from '../../src/webhooks/webhook-fields.ts';
import { changesBeyondGrant, newBeyondGrant } from '../../src/webhooks/webhook-limits.ts';

const grantOf = (eventTypes: readonly string[]): PortalGrant => ({
  label: 'acme',
  capabilities: ['create', 'edit'],
  eventTypes,
  attributeFilters: null,
  returnUrl: null,
  applicationId: null,
  theme: { color_scheme: 'auto' },
});
const wanted = (events: readonly string[]) =>
  newWebhook.parse({ name: 'a', endpoint: 'https://example.com/a', events });

test('a link with every event type allows each of them', () => {
  const grant = grantOf(['*']);
  for (const events of [['event'], ['email_sent', 'message'], ['*']]) {
    expect(newBeyondGrant(grant, wanted(events))).toBeUndefined();
    expect(changesBeyondGrant(grant, { events }, { events: ['page'] })).toBeUndefined();
  }
});

test('a link with some event types allows no other, and not every one', () => {
  const grant = grantOf(['event']);
  for (const events of [['page'], ['event', 'email_sent'], ['*']]) {
    expect(newBeyondGrant(grant, wanted(events))?.message).toMatch(/among the events of the link/);
    expect(changesBeyondGrant(grant, { events }, { events: ['event'] })?.code).toBe(
      'invalid_request',
    );
  }
});
