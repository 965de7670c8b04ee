/** The floor: a uWebSockets.js handler that reads the body and answers. */
import { App } from 'uWebSockets.js';

App()
  .post('/v1/track', (res) => {
    let sizeBytes = 0;
    res.onAborted(() => undefined);
    res.onData((chunk, isLast) => {
      sizeBytes += chunk.byteLength;
      if (!isLast) return;
      res.cork(() => {
        res.writeHeader('Content-Type', 'application/json; charset=utf-8');
        res.end(sizeBytes > 0 ? '{}\n' : '{"empty":true}\n');
      });
    });
  })
  .any('/*', (res) => void res.cork(() => res.writeStatus('404 Not Found').end()))
  .listen('127.0.0.1', Number(process.env['PORT']), () => undefined);
