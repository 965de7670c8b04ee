/** Valid bodies for each call of `calls.ts`. Random ones are made from them. */
export const SAMPLE_BODIES: Readonly<Record<string, readonly unknown[]>> = {
  'pipelines.identify': [
    {
      userId: 'u1',
      anonymousId: 'a1',
      messageId: 'm1',
      traits: {
        email: 'u1@example.com',
        createdAt: '2026-01-01T00:00:00Z',
        plan: { name: 'pro', seats: [1, 2] },
        unsubscribed: true,
        svc_subscription_preferences: { topics: { topic_1: true } },
        _timestamp: 1_767_225_600,
      },
    },
    { anonymousId: 'a1', userId: null, traits: null },
  ],
  'pipelines.track': [
    {
      userId: 'u1',
      event: 'Order Placed',
      messageId: 'm2',
      timestamp: '2026-01-01T10:00:00.123Z',
      sentAt: '2026-01-01T10:00:01Z',
      originalTimestamp: '2026-01-01T10:00:00Z',
      properties: { total: 9.5, items: [{ sku: 'x' }] },
      context: { ip: '192.0.2.1', device: { token: 't', type: 'ios' } },
      integrations: { All: true },
    },
    {
      userId: 'u1',
      event: 'Device Created or Updated',
      context: { device: { token: 't', type: 'android', model: 'X' } },
    },
    {
      userId: 'u1',
      event: 'Report Delivery Event',
      properties: { deliveryId: 'd1', metric: 'opened', recipient: 'u1@example.com' },
    },
    { userId: 'u1', event: 'Relationship Deleted', properties: { objectId: 'o1' } },
    { userId: 'u1', event: 'Report Content Event', properties: { actionType: 'viewed_content' } },
  ],
  'pipelines.page': [{ userId: 'u1', name: 'Home', properties: { url: 'https://x.example/' } }],
  'pipelines.screen': [{ anonymousId: 'a1', properties: { url: 'app://home' } }],
  'pipelines.group': [
    {
      userId: 'u1',
      groupId: 'g1',
      traits: { object_type_id: 2, name: 'G', relationship_traits: { role: 'admin' } },
    },
  ],
  'pipelines.alias': [{ userId: 'u1', previousId: 'u0' }],
  'pipelines.batch': [
    {
      sentAt: '2026-01-01T10:00:00Z',
      context: { library: { name: 'x' } },
      batch: [
        { type: 'identify', userId: 'u1', traits: { plan: 'pro' } },
        { type: 'track', userId: 'u1', event: 'x', messageId: 'm3' },
        { type: 'group', groupId: 'g1' },
      ],
    },
  ],
  'track.v1.identify': [
    {
      email: 'u1@example.com',
      created_at: 1_767_225_600,
      plan: 'pro',
      cio_relationships: {
        action: 'add_relationships',
        relationships: [
          {
            identifiers: { object_type_id: '1', object_id: 'o1' },
            relationship_attributes: { role: 'x' },
          },
        ],
      },
    },
    { anonymous_id: 'a1', _update: true, _timestamp: 1_767_225_600 },
  ],
  'track.v1.delete': [{}],
  'track.v1.suppress': [{}],
  'track.v1.unsuppress': [{}],
  'track.v1.add_device': [
    {
      device: {
        id: 'token',
        platform: 'ios',
        last_used: '1767225600',
        attributes: { app_version: '2' },
      },
    },
  ],
  'track.v1.delete_device': [{}],
  'track.v1.event': [
    {
      name: 'bought',
      type: 'event',
      id: '01KE000000000000000000000A',
      timestamp: 1_767_225_600,
      anonymous_id: 'a1',
      data: { recipient: 'x@example.com', items: [1, { a: null }] },
    },
  ],
  'track.v1.anonymous_event': [
    { name: 'looked', anonymous_id: 'a1', data: {} },
    { name: 'invited', anonymous_id: '', data: { recipient: 'x@example.com' } },
  ],
  'track.v1.merge': [{ primary: { id: 'u1' }, secondary: { email: 'u2@example.com' } }],
  'track.v1.metric': [
    {
      delivery_id: 'd1',
      metric: 'clicked',
      timestamp: 1_767_225_600,
      recipient: 'u1@example.com',
      href: 'https://x.example/',
      metadata: { action_name: 'a' },
    },
  ],
  'track.v1.push_event': [{ delivery_id: 'd1', event: 'opened', device_id: 't', timestamp: 1 }],
  'track.v1.form': [{ data: { email: 'f@example.com', size: 'L', form_name: 'x' } }],
  'track.v1.segment_add': [{ ids: ['u1', 'u2'] }],
  'track.v1.segment_remove': [{ ids: ['u1'] }],
  'track.v1.unsubscribe': [{ unsubscribe: true }],
  'track.v2.entity': [
    {
      type: 'person',
      action: 'identify',
      identifiers: { id: 'u1' },
      attributes: { plan: 'pro' },
      cio_relationships: [{ identifiers: { object_type_id: '1', object_id: 'o1' } }],
    },
    {
      type: 'person',
      action: 'add_device',
      identifiers: { email: 'u1@example.com' },
      device: { token: 't', platform: 'ios' },
    },
    {
      type: 'object',
      action: 'identify_anonymous',
      identifiers: { object_type_id: '1', object_id: 'o1' },
      attributes: { name: 'O' },
      cio_relationships: [{ identifiers: { anonymous_id: 'a1' } }],
    },
    {
      type: 'delivery',
      action: 'event',
      identifiers: { id: 'd1' },
      name: 'opened',
      attributes: { device_token: 't' },
    },
  ],
  'track.v2.batch': [
    {
      batch: [
        { type: 'person', action: 'event', identifiers: { id: 'u1' }, name: 'x', attributes: {} },
        { type: 'person', action: 'merge', primary: { id: 'u1' }, secondary: { id: 'u2' } },
        {
          type: 'object',
          action: 'delete',
          identifiers: { object_type_id: '1', object_id: 'o1' },
        },
      ],
    },
  ],
  publish: [
    { event_type: 'order.paid', event_id: 'p1', application: 'acme', payload: { total: 5 } },
    {
      messages: [
        { event_type: 'order.paid', payload: { total: 5, lines: [{ sku: 'x' }] } },
        { event_type: 'order.sent', event_id: 'p2', channel: 'eu', payload: {} },
      ],
    },
  ],
};
