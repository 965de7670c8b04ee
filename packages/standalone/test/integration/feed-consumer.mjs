/**
 * A consumer of a feed, as a user writes one: results and cursor in one transaction. `node feed-consumer.mjs URL KEY FILE`;
 * it ends after the last event. `KILLED_AT` is the point at which it kills itself, `KILLED_AFTER` how often it passes before.
 */
import { DatabaseSync } from 'node:sqlite';

const [url, key, file] = process.argv.slice(2);
let passes = Number(process.env.KILLED_AFTER ?? 0);
const reached = (point) => {
  if (point === process.env.KILLED_AT && passes-- <= 0) process.kill(process.pid, 'SIGKILL');
};

const database = new DatabaseSync(file);
database.exec(`
  create table if not exists results (place integer primary key autoincrement, event_id text not null);
  create table if not exists saved (cursor text not null);`);
const work = database.prepare('insert into results (event_id) values (?)');
const save = database.prepare('insert into saved values (?)');

const query = { limit: '7', wait: '1' };
for (let { cursor = '' } = database.prepare('select cursor from saved').get() ?? {}; ;) {
  reached('before asking');
  const asking = fetch(`${url}?${new URLSearchParams({ ...query, cursor })}`, {
    headers: { authorization: `Bearer ${key}` },
  });
  // The request has gone out, and its answer is not here.
  setTimeout(() => reached('asking'), 2);
  const answer = await asking;
  if (!answer.ok) throw new Error(`${answer.status} ${await answer.text()}`);
  const { events, cursor: next } = await answer.json();
  reached('with the page');
  if (events.length === 0) break;
  database.exec('begin immediate');
  for (const { event } of events) {
    work.run(event.event_id);
    reached('at work');
  }
  database.exec('delete from saved');
  save.run(next);
  reached('before the commit');
  database.exec('commit');
  reached('after the commit');
  cursor = next;
}
