/** Capacity for tests in which nobody shares it. */
import { SharedCapacity } from '@sluice/platform/process/shared-capacity';

export const capacityOfOne = (capacity: number): SharedCapacity =>
  new SharedCapacity({ capacity, sharePercent: 25, isAlone: () => true, monotonicNow: () => 0 });
