/** A file that is sent: its first line is checked before, and how much of it is sent is shown meanwhile. */
import { type FormEvent, useState } from 'react';
import type { FormOf } from '../client/operations.ts';
import { upload } from '../client/upload.ts';
import { useSession } from '../client/session.ts';
import { Refusal } from '../forms/form-end.tsx';
import { useWork } from '../forms/use-work.ts';
import { announce } from '../parts/announcer.tsx';
import { columnsOf } from '../sentences/csv-head.ts';
import { formText } from '../forms/form-text.ts';
import { choiceOf } from '../routing/location.ts';

const HEAD_SIZE_BYTES = 16_384;
const NEEDED = ['_svc_name', '_svc_customer_id'];

export function ImportUpload({ onUploaded }: { readonly onUploaded: () => void }) {
  const { workspaceId } = useSession();
  const [file, setFile] = useState<File>();
  const [columns, setColumns] = useState<readonly string[]>([]);
  const [sentShare, setSentShare] = useState<number>();
  const { isRunning, problem, run } = useWork();
  const choose = async (chosen: File | undefined): Promise<void> => {
    setFile(chosen);
    setColumns(chosen ? columnsOf(await chosen.slice(0, HEAD_SIZE_BYTES).text()) : []);
  };
  const send = (event: FormEvent<HTMLFormElement>): void => {
    event.preventDefault();
    if (!file) return;
    const form = event.currentTarget;
    const fields: FormOf<'/v1/imports'> = {
      name: formText(form, 'name') || file.name,
      type: 'event',
      identifier: choiceOf(['id', 'email'], formText(form, 'identifier')) ?? 'id',
      data_to_process: 'all',
      // The API reads the fields before it.
      file,
    };
    const body = new FormData();
    for (const [name, value] of Object.entries(fields)) body.set(name, value);
    void run(async () => {
      try {
        await upload('/v1/imports', { body, workspaceId, onProgress: setSentShare });
      } finally {
        setSentShare(undefined);
      }
      announce('The file is sent');
      form.reset();
      await choose(undefined);
      onUploaded();
    });
  };
  const missing = NEEDED.filter((name) => !columns.includes(name));
  return (
    <form className="card" onSubmit={send} aria-label="A new import">
      <div className="filters">
        <label>
          File{' '}
          <input
            type="file"
            name="chosen"
            accept=".csv,.gz,text/csv"
            required
            onChange={(event) => void choose(event.currentTarget.files?.[0])}
          />
        </label>
        <label>
          Name <input name="name" maxLength={100} autoComplete="off" />
        </label>
        <label>
          People are named by{' '}
          <select name="identifier">
            <option value="id">id</option>
            <option value="email">email</option>
          </select>
        </label>
        <button type="submit" className="main" disabled={isRunning || !file}>
          Import
        </button>
      </div>
      {file && columns.length > 0 && (
        <p role="status" className={missing.length > 0 ? 'refusal' : ''}>
          {missing.length > 0
            ? `The first line lacks ${missing.join(' and ')}.`
            : `Columns: ${columns.join(', ')}.`}
        </p>
      )}
      {sentShare !== undefined && (
        <p role="status">
          <progress max={1} value={sentShare} aria-label="Part of the file that is sent" />{' '}
          {Math.round(sentShare * 100)} % sent
        </p>
      )}
      <Refusal problem={problem} />
    </form>
  );
}
