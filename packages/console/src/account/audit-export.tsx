/** The audit log as a file: ordered, waited for with its progress, then fetched by a link that is good for ten minutes. */
import { useEffect, useState } from 'react';
import { get, post } from '../client/calls.ts';
import type { BodyOf, Described, QueryOf } from '../client/operations.ts';
import { request, RequestFailed } from '../client/request.ts';
import { useSession } from '../client/session.ts';
import { useCallOnce } from '../forms/use-call-once.ts';
import { useWork } from '../forms/use-work.ts';
import { announce } from '../parts/announcer.tsx';

type Export = Described<'ExportResponse'>['export'];
type WantedExport = NonNullable<BodyOf<'post', '/v1/accounts/{account_id}/audit_logs/export'>>;

/** Of the entries in the file. */
export type AuditFilters = Omit<
  QueryOf<'/v1/accounts/{account_id}/audit_logs'>,
  'limit' | 'sort_order' | 'cursor'
>;

const POLL_MS = 1_000;

export function AuditExport({ filters }: { readonly filters: AuditFilters }) {
  const { account } = useSession();
  const [ordered, setOrdered] = useState<Export>();
  const callOnce = useCallOnce();
  const { isRunning, problem, run } = useWork();
  const isWaiting = ordered?.status === 'pending' || ordered?.status === 'processing';
  useEffect(() => {
    if (!ordered || !isWaiting) return undefined;
    const timer = setTimeout(async () => {
      try {
        const answer = await request(
          get('/v1/accounts/{account_id}/audit_logs/exports/{export_id}', {
            path: { account_id: account.id, export_id: ordered.id },
          }),
        );
        if (answer.export.status === 'completed') announce('The file is ready');
        setOrdered(answer.export);
      } catch (error) {
        if (!(error instanceof RequestFailed)) throw error;
        // Asked again: the order stands.
        setOrdered({ ...ordered });
      }
    }, POLL_MS);
    return () => clearTimeout(timer);
  }, [ordered, isWaiting, account.id]);
  const order = (format: 'csv' | 'ndjson') => (): void =>
    void run(async () => {
      const numbers = ['user_id', 'credential_id', 'session_id'];
      const body = Object.fromEntries(
        Object.entries({ format, ...filters }).map(([name, value]) => [
          name,
          numbers.includes(name) ? Number(value) : value,
        ]),
      ) as WantedExport;
      const answer = await callOnce(
        post('/v1/accounts/{account_id}/audit_logs/export', {
          path: { account_id: account.id },
          body,
        }),
      );
      setOrdered(answer.export);
    });
  return (
    <span className="actions">
      <button type="button" disabled={isRunning || isWaiting} onClick={order('csv')}>
        Export CSV
      </button>
      <button type="button" disabled={isRunning || isWaiting} onClick={order('ndjson')}>
        Export NDJSON
      </button>
      <span role="status">
        {isWaiting && `writing the file, ${Math.round((ordered?.progress ?? 0) * 100)} %`}
        {ordered?.status === 'failed' && 'The file could not be written: order it again.'}
        {ordered?.download_url && (
          <a href={ordered.download_url} download="">
            Download {ordered.row_count} entries
          </a>
        )}
      </span>
      {problem !== undefined && (
        <span className="refusal" role="alert">
          {problem}
        </span>
      )}
    </span>
  );
}
