/**
 * A receiver of webhooks that costs as little as can be: it reads the body and answers 200. If the
 * body's `delivery_id` is a time and a number (`<Unix ms>-<n>`), it also notes how long ago that was, and
 * that this number has come.
 */
import { App } from 'uWebSockets.js';

const SENT_AT = /"delivery_id":"(\d{13})-(\d+)"/;

let count = 0;
let latenciesMs: number[] = [];
/** A byte a number. */
let arrived = new Uint8Array(2 ** 20);
let distinctCount = 0;

App()
  .post('/*', (res) => {
    res.onAborted(() => undefined);
    let sent: RegExpExecArray | null | undefined;
    res.onData((chunk, isLast) => {
      const found = process.env['LATENCIES'] && SENT_AT.exec(Buffer.from(chunk).toString('latin1'));
      if (found) sent = found;
      if (!isLast) return;
      count++;
      if (sent) {
        latenciesMs.push(Date.now() - Number(sent[1]));
        note(Number(sent[2]));
      }
      res.cork(() => res.end('ok'));
    });
  })
  .get('/count', (res) => void res.cork(() => res.end(String(count))))
  .get('/distinct', (res) => void res.cork(() => res.end(String(distinctCount))))
  .get('/latencies', (res) => {
    const noted = latenciesMs;
    latenciesMs = [];
    res.cork(() => res.end(JSON.stringify(noted)));
  })
  .listen('0.0.0.0', Number(process.env['PORT']), () => undefined);

function note(number: number): void {
  if (number >= arrived.length) {
    const larger = new Uint8Array(Math.max(number + 1, arrived.length * 2));
    larger.set(arrived);
    arrived = larger;
  }
  if (arrived[number] === 0) distinctCount++;
  arrived[number] = 1;
}
