/** Times of list pages of a workspace with many endpoints. Used by `idle.ts`. */
import { DEMO } from '@sluice/database/demo/seed-demo';

/** A page of any list: the slowest of a run, alone on the machine. */
const PAGE_MS_MAX = 50;
const LIMIT = 100;
/** Lists of endpoints that are read, spread over the applications. */
const APPLICATIONS_READ = 100;

interface Page {
  readonly applications?: readonly { readonly id: string }[];
  readonly endpoints?: readonly unknown[];
  readonly next: string;
}

/**
 * Reads the applications page by page, then the endpoints of a hundred of them and the webhooks of the workspace, one
 * request at a time. The first ten warm up.
 *
 * @param expected - number of applications; another number is an error.
 */
export async function timeLists(
  apiUrl: string,
  expected: number,
): Promise<{ ratios: Record<string, number>; latencyMs: Record<string, number> }> {
  const timesMs: Record<'applications' | 'endpoints' | 'webhooks', number[]> = {
    applications: [],
    endpoints: [],
    webhooks: [],
  };
  const read = async (list: keyof typeof timesMs, path: string): Promise<Page> => {
    const startedAtMs = performance.now();
    const answer = await fetch(`${apiUrl}${path}`, {
      headers: { authorization: `Bearer ${DEMO.appKey}` },
    });
    if (answer.status !== 200) throw new Error(`${path}: ${answer.status} ${await answer.text()}`);
    const page = (await answer.json()) as Page;
    timesMs[list].push(performance.now() - startedAtMs);
    return page;
  };
  for (let warmUp = 0; warmUp < 10; warmUp++) await read('webhooks', '/v1/reporting_webhooks');
  timesMs.webhooks = [];

  const ids: string[] = [];
  let start = '';
  do {
    const page = await read(
      'applications',
      `/v1/applications?limit=${LIMIT}${start && `&start=${encodeURIComponent(start)}`}`,
    );
    ids.push(...(page.applications ?? []).map(({ id }) => id));
    start = page.next;
  } while (start);
  if (ids.length !== expected) throw new Error(`${expected} applications, ${ids.length} listed`);
  for (let place = 0; place < APPLICATIONS_READ; place++) {
    const id = ids[Math.floor((place * ids.length) / APPLICATIONS_READ)] ?? '';
    const { endpoints } = await read(
      'endpoints',
      `/v1/applications/${id}/endpoints?limit=${LIMIT}`,
    );
    if (!endpoints?.length) throw new Error(`application ${id} has no endpoints`);
    await read('webhooks', '/v1/reporting_webhooks');
  }
  const slowest = (list: keyof typeof timesMs): number => Math.max(...timesMs[list]);
  const lists = Object.keys(timesMs) as (keyof typeof timesMs)[];
  return {
    ratios: { 'page of a list/limit': Math.max(...lists.map(slowest)) / PAGE_MS_MAX },
    latencyMs: Object.fromEntries(lists.map((list) => [`page of ${list}, slowest`, slowest(list)])),
  };
}
