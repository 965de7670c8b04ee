/**
 * A receiver of webhooks that costs as little as can be: it reads the body and answers 200. Where the
 * body's `delivery_id` begins with a time (`<Unix ms>-…`), it also notes how long ago that was.
 */
import { App } from 'uWebSockets.js';

const SENT_AT = /"delivery_id":"(\d{13})-/;

let count = 0;
let latenciesMs: number[] = [];
App()
  .post('/*', (res) => {
    res.onAborted(() => undefined);
    let sentAtMs = NaN;
    res.onData((chunk, isLast) => {
      const found = process.env['LATENCIES'] && SENT_AT.exec(Buffer.from(chunk).toString('latin1'));
      if (found) sentAtMs = Number(found[1]);
      if (!isLast) return;
      count++;
      if (sentAtMs > 0) latenciesMs.push(Date.now() - sentAtMs);
      res.cork(() => res.end('ok'));
    });
  })
  .get('/count', (res) => void res.cork(() => res.end(String(count))))
  .get('/latencies', (res) => {
    const noted = latenciesMs;
    latenciesMs = [];
    res.cork(() => res.end(JSON.stringify(noted)));
  })
  .listen('0.0.0.0', Number(process.env['PORT']), () => undefined);
