/** Health of the installation, and its backlogs. Alerts come first, each with its runbook; then all other facts. */
import type { ReactNode } from 'react';
import { get } from '../client/calls.ts';
import type { AnswerOf } from '../client/operations.ts';
import { useResource } from '../client/resource.ts';
import { ListTable } from '../parts/list-table.tsx';
import { Badge } from '../parts/badge.tsx';
import { Shown } from '../parts/states.tsx';
import { Time, useNow } from '../parts/time.tsx';
import { UnknownKeyList } from '../parts/unknown-keys.tsx';
import type { Route } from '../routing/router.tsx';
import { ageText, durationText } from '../sentences/time-text.ts';
import { visibleText } from '../sentences/visible-text.ts';

type Fleet = AnswerOf<'get', '/v1/fleet'>;
type FleetProcess = Fleet['processes'][number];
type Shard = NonNullable<Fleet['shards']>[number];

const INTERVAL_MS = 10_000;

export const fleetRoute: Route = {
  pattern: '/fleet',
  title: () => 'Fleet',
  query: {},
  capability: 'fleet.read',
  screen: () => <FleetView />,
};

function FleetView() {
  const resource = useResource(get('/v1/fleet'), { intervalMs: INTERVAL_MS });
  return (
    <>
      <header className="title">
        <h1>Fleet</h1>
        <p className="lead">All processes of this installation, which all accounts share.</p>
      </header>
      <Shown resource={resource}>
        {(fleet) => (
          <>
            <Alerts fleet={fleet} />
            <Backlog fleet={fleet} />
            <UnknownKeyList unknownKeys={fleet.unknown_keys} />
            <Processes processes={fleet.processes} />
            <Shards shards={fleet.shards} />
          </>
        )}
      </Shown>
    </>
  );
}

/** The address of a page of `docs/`, as HTML. */
const pageOf = (runbook: string): string =>
  `/docs/pages/${runbook.replace(/^docs\//, '').replace(/\.md$/, '')}`;

function Alerts({ fleet: { alerts } }: { readonly fleet: Fleet }) {
  return (
    <section className={`card lane ${alerts.length === 0 ? 'good' : 'bad'}`} aria-label="To act on">
      {alerts.length === 0 ? (
        <p className="sentence">Everything is well: no alert is active.</p>
      ) : (
        <ul className="plain-list">
          {alerts.map(({ name, summary, runbook }) => (
            <li key={`${name} ${summary}`}>
              <strong>{name}</strong>: {visibleText(summary)}.{' '}
              <a href={pageOf(runbook)} target="_blank" rel="noreferrer" data-row="">
                Runbook of {name}
              </a>
            </li>
          ))}
        </ul>
      )}
    </section>
  );
}

const ageOf = (ms: number | null): string => (ms === null ? '–' : durationText(ms));

function Backlog({ fleet }: { readonly fleet: Fleet }) {
  const { broker, lanes } = fleet;
  const spilled = fleet.processes.flatMap(({ spill }) => spill ?? []);
  const inSpills = spilled.reduce((sum, spill) => sum + spill.commit_batches, 0);
  return (
    <section aria-labelledby="backlog">
      <h2 id="backlog">What waits</h2>
      <dl className="pairs">
        <Pair name="Broker">
          {broker
            ? `${broker.kind}: ${visibleText(broker.description)}${broker.full ? '; it is full' : ''}`
            : 'does not answer'}
        </Pair>
        <Pair name="Failed commit batches">{broker?.failed_commit_batches ?? '–'}</Pair>
        <Pair name="On the disks of intakes">
          {inSpills === 0 ? 'nothing' : `${inSpills} commit batches`}
        </Pair>
        <Pair name="Deliveries to endpoints that answer">
          {lanes.healthy.deliveries}, the oldest {ageOf(lanes.healthy.oldest_age_ms)}
        </Pair>
        <Pair name="Deliveries behind a failed one">
          {lanes.failing.deliveries} of {lanes.failing.webhooks} webhooks, the oldest{' '}
          {ageOf(lanes.failing.oldest_age_ms)}
        </Pair>
        <Pair name="Dead-lettered operations">{fleet.parked_operations}</Pair>
        <Pair name="Purchases in manual review">{fleet.set_aside_purchases}</Pair>
        <Pair name="Oldest event of the payment provider">
          {ageOf(fleet.provider_event_oldest_age_ms)}
        </Pair>
        <Pair name="Oldest mail that could not be sent">{ageOf(fleet.outbox_oldest_age_ms)}</Pair>
      </dl>
    </section>
  );
}

function Pair({ name, children }: { readonly name: string; readonly children: ReactNode }) {
  return (
    <div>
      <dt>{name}</dt>
      <dd>{children}</dd>
    </div>
  );
}

function Processes({ processes }: { readonly processes: readonly FleetProcess[] }) {
  const nowMs = useNow();
  return (
    <section aria-labelledby="processes">
      <h2 id="processes">Processes</h2>
      <ListTable
        caption="Processes that reported within the last minute"
        heads={['Service', 'Version', 'Host', 'Since', 'Last beat', 'Clock', 'State']}
      >
        {processes.map((each) => (
          <tr key={each.id}>
            <th scope="row">{each.service}</th>
            <td>{visibleText(each.version)}</td>
            <td>
              <code>
                {visibleText(each.host)} {each.pid}
              </code>
            </td>
            <td>
              <Time atMs={Date.parse(each.started_at)} isWhole />
            </td>
            <td>{ageText(nowMs - each.beat_age_ms, nowMs)}</td>
            <td>
              {each.clock_ahead_ms === null
                ? 'not measured'
                : `${each.clock_ahead_ms >= 0 ? '+' : '-'}${durationText(Math.abs(each.clock_ahead_ms))}`}
            </td>
            <td>
              <ProcessState process={each} />
            </td>
          </tr>
        ))}
      </ListTable>
    </section>
  );
}

function ProcessState({ process }: { readonly process: FleetProcess }) {
  const { broker_answers: answers, stuck_queues: stuck, spill } = process;
  if (answers === false) return <Badge state="failing" text="broker away" />;
  if (stuck.length > 0) return <Badge state="failing" text={`stuck: ${stuck.join(', ')}`} />;
  if (spill && spill.commit_batches > 0)
    return (
      <Badge
        state="retrying"
        text={`on disk: ${Math.ceil((100 * spill.size_bytes) / Math.max(1, spill.size_bytes_max))} %`}
      />
    );
  return <Badge state="healthy" text="well" />;
}

function Shards({ shards }: { readonly shards: readonly Shard[] | null }) {
  return (
    <section aria-labelledby="shards">
      <h2 id="shards">Shards</h2>
      {shards === null ? (
        <p className="faint">The broker does not answer, so their state is unknown.</p>
      ) : (
        <ListTable
          caption="Commit batches that wait or run, by shard"
          heads={['Shard', 'Waiting', 'Oldest', 'State']}
        >
          {shards.map((each) => (
            <tr key={each.shard}>
              <th scope="row">{each.shard}</th>
              <td>{each.waiting}</td>
              <td>{ageOf(each.oldest_age_ms)}</td>
              <td>
                <Badge
                  state={each.stuck ? 'failing' : 'healthy'}
                  text={each.stuck ? 'stuck' : 'moves'}
                />
              </td>
            </tr>
          ))}
        </ListTable>
      )}
    </section>
  );
}
