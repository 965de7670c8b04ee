/** A count of the workspace over time: its sum in words, bars, and the same numbers in a table. */
import { useState } from 'react';
import { get } from '../client/calls.ts';
import { useResource } from '../client/resource.ts';
import { useReach } from '../client/session.ts';
import { ListTable } from '../parts/list-table.tsx';
import { Shown } from '../parts/states.tsx';
import { Time } from '../parts/time.tsx';
import { countText } from '../sentences/money-text.ts';
import { Bars } from './bars.tsx';
import { stepValues, type StepValue } from './step-values.ts';

const INTERVAL_MS = 30_000;

/** How far back a chart goes, and how long a step is. */
const SPANS = {
  day: { step: '1h', ms: 86_400_000, text: 'in the last 24 hours' },
  month: { step: '1d', ms: 30 * 86_400_000 - 1, text: 'in the last 30 days' },
} as const;

export function StatisticsChart({
  metric,
  what,
  span,
  webhookId,
  tone = 'good',
}: {
  readonly metric: 'events' | 'refused' | 'delivered' | 'failed';
  /** As it follows the number: `calls were refused`. */
  readonly what: string;
  readonly span: keyof typeof SPANS;
  /** Absent: of all webhooks. */
  readonly webhookId?: number;
  readonly tone?: 'good' | 'bad';
}) {
  const { workspaceId } = useReach();
  const { step, ms, text } = SPANS[span];
  // Stays as it is while the screen is open, and the end goes on: a chart that grows, and one path to read.
  const [from] = useState(() => new Date(Date.now() - ms).toISOString());
  const [isOpen, setIsOpen] = useState(false);
  const resource = useResource(
    get('/v1/statistics', { query: { metric, step, from, webhook_id: webhookId } }),
    { workspaceId, intervalMs: INTERVAL_MS },
  );
  // Before the answer it is as high as after it: the caption, the bars and the line below them.
  const chartOf = (values: readonly StepValue[] | undefined) => (
    <>
      <figcaption>
        <b>{values ? countText(values.reduce((sum, { value }) => sum + value, 0)) : '…'}</b> {what}{' '}
        {text}
      </figcaption>
      <Bars
        tone={tone}
        bars={(values ?? []).map(({ atMs, value }) => ({ key: String(atMs), value }))}
      />
      <details onToggle={({ currentTarget }) => setIsOpen(currentTarget.open)}>
        <summary>In numbers</summary>
        {isOpen && values && (
          <ListTable caption={`${what}, newest first`} heads={['From', 'Count']}>
            {values.toReversed().map(({ atMs, value }) => (
              <tr key={atMs}>
                <th scope="row">
                  <Time atMs={atMs} isWhole />
                </th>
                <td>{countText(value)}</td>
              </tr>
            ))}
          </ListTable>
        )}
      </details>
    </>
  );
  return (
    <figure className="chart">
      <Shown resource={resource} waiting={chartOf(undefined)}>
        {(statistics) => chartOf(stepValues(statistics))}
      </Shown>
    </figure>
  );
}
