/** A running `sluice`, and a webhook for it to show. */
import { createInterface } from 'node:readline';
import { DEMO } from '@sluice/database/demo/seed-demo';
import { expect } from 'vitest';
import type { Fleet } from '../fleet-under-test.ts';
import { runProgram, SLUICE, sluiceSettings } from '../program-under-test.ts';

/** `sluice`, that goes on until the test ends. */
export function follow(fleet: Fleet, ...words: string[]) {
  const { child } = runProgram(SLUICE, words, sluiceSettings(fleet));
  const lines: string[] = [];
  const notes: string[] = [];
  createInterface(child.stdout).on('line', (line) => lines.push(line));
  createInterface(child.stderr).on('line', (line) => notes.push(line));
  return { child, lines, notes };
}

export async function makeWebhook(fleet: Fleet, endpoint: string): Promise<number> {
  const answer = await fetch(`${fleet.api.url}/v1/reporting_webhooks`, {
    method: 'POST',
    headers: { Authorization: `Bearer ${DEMO.appKey}`, 'Content-Type': 'application/json' },
    body: JSON.stringify({
      name: 'Listener',
      endpoint,
      events: ['customer_unsubscribed', 'customer_subscribed'],
      disabled: false,
      full_resolution: true,
      with_content: false,
    }),
  });
  expect(answer.status).toBe(200);
  return ((await answer.json()) as { id: number }).id;
}
