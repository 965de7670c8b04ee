/** The calls of the Pipelines API. */
import {
  PIPELINES_BATCH_ITEM_SIZE_BYTES_MAX,
  PIPELINES_BATCH_SIZE_BYTES_MAX,
  PIPELINES_REQUEST_SIZE_BYTES_MAX,
  PIPELINES_STRICT_BATCH_SIZE_BYTES_MAX,
  PIPELINES_STRICT_REQUEST_SIZE_BYTES_MAX,
} from '@sluice/domain/operations/limits';
import { type IntakeCall, kilobytes } from './intake-call.ts';

const LIMIT = `At most ${kilobytes(PIPELINES_REQUEST_SIZE_BYTES_MAX)} after decompression, in strict mode ${kilobytes(PIPELINES_STRICT_REQUEST_SIZE_BYTES_MAX)}.`;

export const PIPELINES_CALLS: readonly IntakeCall[] = [
  {
    method: 'post',
    path: '/v1/identify',
    operationId: 'identify',
    summary: 'Report a person and their traits',
    description: `Makes or changes a person, or keeps attributes of a visitor. ${LIMIT}`,
    body: 'PipelinesIdentify',
    example: { userId: 'ada', traits: { email: 'ada@example.com', plan: 'premium' } },
  },
  {
    method: 'post',
    path: '/v1/track',
    operationId: 'track',
    summary: 'Report an event of a person or a visitor',
    description: `An event, or a command if the name is one. ${LIMIT}`,
    body: 'PipelinesTrack',
    example: {
      userId: 'ada',
      event: 'Order Completed',
      properties: { total: 12 },
      messageId: '01J9Z6C0N4V8Y2QW3R5T7B1KXA',
    },
  },
  {
    method: 'post',
    path: '/v1/page',
    operationId: 'page',
    summary: 'A page that somebody saw',
    description: LIMIT,
    body: 'PipelinesPage',
    example: {
      anonymousId: 'visitor-1',
      name: 'Pricing',
      properties: { url: 'https://example.com/pricing' },
    },
  },
  {
    method: 'post',
    path: '/v1/screen',
    operationId: 'screen',
    summary: 'A screen that somebody saw',
    description: LIMIT,
    body: 'PipelinesScreen',
    example: { userId: 'ada', name: 'Settings' },
  },
  {
    method: 'post',
    path: '/v1/group',
    operationId: 'group',
    summary: 'Report an object and its members',
    description: LIMIT,
    body: 'PipelinesGroup',
    example: {
      userId: 'ada',
      groupId: 'acme',
      traits: { object_type_id: '1', name: 'Acme', relationship_traits: { role: 'admin' } },
    },
  },
  {
    method: 'post',
    path: '/v1/alias',
    operationId: 'alias',
    summary: 'Two people are one',
    description: `Merges \`previousId\` into \`userId\`, gives a person a new id, or identifies a visitor. ${LIMIT}`,
    body: 'PipelinesAlias',
    example: { previousId: 'visitor-1', userId: 'ada' },
  },
  {
    method: 'post',
    path: '/v1/batch',
    operationId: 'batch',
    summary: 'Several calls in one',
    description: `One call whose items apply in their order. At most ${kilobytes(PIPELINES_BATCH_SIZE_BYTES_MAX)} (\`INTAKE_BATCH_SIZE_BYTES_MAX\`), in strict mode ${kilobytes(PIPELINES_STRICT_BATCH_SIZE_BYTES_MAX)}; an item at most ${kilobytes(PIPELINES_BATCH_ITEM_SIZE_BYTES_MAX)}, the part beside the items 64 KB. \`/v1/import\` takes the same.`,
    body: 'PipelinesBatch',
    example: {
      batch: [
        { type: 'identify', userId: 'ada', traits: { plan: 'premium' } },
        { type: 'track', userId: 'ada', event: 'Order Completed' },
      ],
    },
  },
];
