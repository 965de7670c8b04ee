/** An application as `GET /v1/applications/{id}` shows it: a customer of the workspace. */
import type { Described } from '../client/operations.ts';

export type Application = Described<'Application'>;
