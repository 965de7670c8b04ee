import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import type { WholeAuditLogEntry } from '../../src/accounts/audit-entry.ts';
import { exportHead, exportLine } from '../../src/accounts/audit-export.ts';

const entry: WholeAuditLogEntry = {
  auditLogId: 3,
  occurredAt: new Date('2026-03-01T12:00:00.123Z'),
  action: 'updated',
  objectType: 'reporting_webhook',
  objectId: '7',
  objectName: 'Orders',
  environmentId: 1,
  actorType: 'user',
  userId: 5,
  serviceAccountId: null,
  actorName: 'Ada Lovelace',
  actorEmail: 'ada@example.com',
  ipAddr: '192.0.2.1',
  userAgent: 'curl/8',
  requestId: 'req_1',
  changedAttributes: ['name', 'endpoint'],
  credentialId: 9,
  sessionId: 12,
  runId: null,
  portalLinkId: null,
  changes: [{ attribute: 'name', from: 'A', to: 'say "B", twice', redacted: false }],
  previousHash: '0'.repeat(64),
  hash: '1'.repeat(64),
};

/** RFC 4180, written for this test from its text. */
function readCsv(text: string): string[][] {
  const lines: string[][] = [];
  let line: string[] = [];
  let at = 0;
  while (at < text.length) {
    let cell = '';
    if (text[at] === '"') {
      for (at++; text[at] !== '"' || text[at + 1] === '"'; at++) {
        if (text[at] === '"') at++;
        cell += text[at];
      }
      at++;
    } else {
      while (text[at] !== ',' && text[at] !== '\r') cell += text[at++];
    }
    line.push(cell);
    if (text[at] === ',') at++;
    else {
      expect(text.slice(at, at + 2)).toBe('\r\n');
      at += 2;
      lines.push(line);
      line = [];
    }
  }
  return lines;
}

const column = (name: string): number => readCsv(exportHead('csv'))[0]?.indexOf(name) ?? -1;

describe('CSV', () => {
  test('has a line of names, and a cell for each in every line', () => {
    const [names, cells] = readCsv(exportHead('csv') + exportLine('csv', entry));
    expect(Object.fromEntries(names?.map((name, index) => [name, cells?.[index]]) ?? [])).toEqual({
      id: '3',
      occurred_at: '2026-03-01T12:00:00.123Z',
      action: 'updated',
      object_type: 'reporting_webhook',
      object_id: '7',
      object_name: 'Orders',
      actor_type: 'user',
      user_id: '5',
      service_account_id: '',
      actor_name: 'Ada Lovelace',
      actor_email: 'ada@example.com',
      ip_addr: '192.0.2.1',
      user_agent: 'curl/8',
      environment_id: '1',
      changed_attributes: 'name endpoint',
      changes: JSON.stringify(entry.changes),
      credential_id: '9',
      session_id: '12',
      portal_link_id: '',
      run_id: '',
      request_id: 'req_1',
      prev_hash: entry.previousHash,
      hash: entry.hash,
    });
  });

  test('gives any text back unchanged if the text is not a formula', () => {
    fc.assert(
      fc.property(fc.string({ unit: 'grapheme' }), (objectName) => {
        fc.pre(!/^[=+\-@\t\r\n\uff1d\uff0b\uff0d\uff20]/.test(objectName));
        const [cells] = readCsv(exportLine('csv', { ...entry, objectName }));
        expect(cells?.[column('object_name')]).toBe(objectName);
      }),
    );
  });

  test.each(['=1+1', '+1', '-1+1', '@SUM(A1)', '\t=1', '\r=1', '\n=1', '＝1', '=cmd|"/c calc"!A1'])(
    'shows %j as text',
    (objectName) => {
      const [cells] = readCsv(exportLine('csv', { ...entry, objectName, userAgent: objectName }));
      expect(cells?.[column('object_name')]).toBe(`'${objectName}`);
      expect(cells?.[column('user_agent')]).toBe(`'${objectName}`);
    },
  );
});

test('NDJSON is one line of JSON an entry, with every character', () => {
  const line = exportLine('ndjson', { ...entry, objectName: '=1\n2\u2028' });
  expect(line.indexOf('\n')).toBe(line.length - 1);
  expect(JSON.parse(line)).toMatchObject({
    id: 3,
    object_name: '=1\n2\u2028',
    actor: { type: 'user', user_id: 5, name: 'Ada Lovelace' },
    changes: entry.changes,
    context: { location: null, credential_id: 9, run_id: null },
    prev_hash: entry.previousHash,
    hash: entry.hash,
  });
  expect(exportHead('ndjson')).toBe('');
});
