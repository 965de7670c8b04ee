/** The description of all calls, which every page of the reference reads. */
import type { ReactNode } from 'react';
import { useResource } from '../client/resource.ts';
import { Shown } from '../parts/states.tsx';
import type { Document } from './described-call.ts';

export function WithDocument({
  children,
}: {
  readonly children: (document: Document) => ReactNode;
}) {
  const resource = useResource<Document>('/openapi.json');
  return <Shown resource={resource}>{children}</Shown>;
}
