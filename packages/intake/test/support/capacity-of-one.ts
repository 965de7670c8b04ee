/** Capacity for tests with one workspace alone. */
import { SharedCapacity } from '@sluice/platform/process/shared-capacity';

export const capacityOfOne = (capacity: number): SharedCapacity =>
  new SharedCapacity({ capacity, sharePercent: 25, isAlone: () => true, monotonicNow: () => 0 });
