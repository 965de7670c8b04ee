/** A page of relationships, of a person or of an object: `cio_relationships` is the same list again. */
import { z } from 'zod';
import { nextToken, splitPage } from '../http/page.ts';

/** Begin of a page: the number of the person or the object that the one before ended with. */
export const numberPosition = z
  .tuple([z.string().regex(/^\d{1,18}$/)])
  .transform(([number]) => number);

export const relationshipPage = <Shape extends z.ZodType>(relationship: Shape) =>
  z.object({
    svc_relationships: z.array(relationship),
    cio_relationships: z.array(relationship),
    next: nextToken,
  });

/** @param rows - one more than `limit` if there are more. */
export function toRelationshipPage<Row, Shown>(
  rows: readonly Row[],
  limit: number,
  numberOf: (row: Row) => string,
  toShown: (row: Row) => Shown,
) {
  const { page, next } = splitPage(rows, limit, (row) => [numberOf(row)]);
  const relationships = page.map((row) => toShown(row));
  return { svc_relationships: relationships, cio_relationships: relationships, next };
}
