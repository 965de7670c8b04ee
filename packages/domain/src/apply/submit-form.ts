/** A form (`ingestion-conventions.md` §1.1): its fields become the person's attributes, its sending part of their history. */
import { identifyPerson } from './upsert-person.ts';
import type { SubmitForm } from '../operations/operation.ts';
import type { WorkingSet } from '../state/working-set.ts';

/** Applies one submitted form; the person is made on first sight. */
export function submitForm(set: WorkingSet, operation: SubmitForm): void {
  const { person: identifier, fields, formId } = operation;
  const person = identifyPerson(set, operation, {
    person: identifier,
    attributes: fields,
    mayCreate: true,
  });
  if (person) set.addActivity(person, operation, 'form', formId, fields);
}
