/** Promises of a run with a node of Citus away. */
import type { NodeDrillReport } from './run-node-drill.ts';

/** For the workspaces of the nodes that stay, on two cores without other work. */
const LONGEST_STOP_MS_MAX = 5_000;

/** Of the events that were acknowledged in that time. */
const APPLIED_SHARE_MIN = 0.9;

/** @returns a sentence for each promise that was broken; empty if all were kept. */
export function judgeNodeDrill({ others, own }: NodeDrillReport): readonly string[] {
  const problems: string[] = [];
  for (const [name, side] of Object.entries({ others, own })) {
    if (side.refused > 0) problems.push(`${name}: ${side.refused} calls were refused`);
    if (side.lost > 0) problems.push(`${name}: ${side.lost} acknowledged events are missing`);
    if (side.doubled > 0) problems.push(`${name}: ${side.doubled} events are stored twice`);
  }
  if (others.acknowledged === 0) problems.push('others: no event was acknowledged meanwhile');
  if (others.longestStopMs > LONGEST_STOP_MS_MAX)
    problems.push(
      `others: no event was applied for ${others.longestStopMs} ms, not within ${LONGEST_STOP_MS_MAX}`,
    );
  if (others.applied < APPLIED_SHARE_MIN * others.acknowledged)
    problems.push(
      `others: only ${others.applied} of ${others.acknowledged} events were applied while the node was away`,
    );
  return problems;
}
