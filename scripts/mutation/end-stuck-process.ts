/**
 * Before every test file of a mutant: a mutant may never leave a loop, and then no timer of the test's own process runs.
 * A second thread kills the process once its event loop has stood still for 20 s, which a busy machine does not do to it.
 */
import { Worker } from 'node:worker_threads';

const STUCK_MS = 20_000;
const BEAT_INTERVAL_MS = 200;

const beat = new Int32Array(new SharedArrayBuffer(4));
const watch = new Worker(
  `const { workerData: { beat, stuckMs } } = require('node:worker_threads');
   let last = -1;
   setInterval(() => {
     if (beat[0] === last) process.kill(process.pid, 'SIGKILL');
     last = beat[0];
   }, stuckMs);`,
  { eval: true, workerData: { beat, stuckMs: STUCK_MS } },
);
watch.unref();
setInterval(() => Atomics.add(beat, 0, 1), BEAT_INTERVAL_MS).unref();
