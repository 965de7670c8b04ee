/** A receiver of webhooks that costs as little as can be: it reads the body and answers 200. */
import { App } from 'uWebSockets.js';

let count = 0;
App()
  .post('/*', (res) => {
    res.onAborted(() => undefined);
    res.onData((_, isLast) => {
      if (!isLast) return;
      count++;
      res.cork(() => res.end('ok'));
    });
  })
  .get('/count', (res) => void res.cork(() => res.end(String(count))))
  .listen('0.0.0.0', Number(process.env['PORT']), () => undefined);
