/** The description of all calls, which every page of the reference reads. */
import type { ReactNode } from 'react';
import { own } from '../client/request.ts';
import { useResource } from '../client/resource.ts';
import { Shown } from '../parts/states.tsx';
import type { Document } from './described-call.ts';

export function WithDocument({
  children,
}: {
  readonly children: (document: Document) => ReactNode;
}) {
  const resource = useResource(own<Document>('get', '/openapi.json'));
  return <Shown resource={resource}>{children}</Shown>;
}
