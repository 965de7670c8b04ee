/** `docs/reference/errors.md`: every failure, from the tables that the processes and the API use. */
import { PROBLEMS } from '@sluice/api/http/problem';
import { ISSUE_CODES } from '@sluice/domain/operations/issue';
import { ERRORS } from '@sluice/domain/values/errors';
import { code, page, table } from './markdown.ts';

const INTRODUCTION = `Three tables: the errors of a process, the errors of an HTTP call to the API, and the issues of a call to intake.
The [glossary](../concepts/glossary.md) defines the words.`;

const OF_PROCESSES = `A process that cannot start or continue ends with exit code 1. The last line of its log has the level \`fatal\`
(\`"level":60\`), at every \`LOG_LEVEL\`. The line has a \`code\` of this table, the problem and the next action. A failure
that is not in this table has an \`error\` with its stack. \`npm start\` prints the failure on one line for people.`;

const OF_CALLS = `The API answers each failure with one body. It has the members of RFC 9457 (\`type\`, \`title\`, \`status\`, \`detail\`), and
\`code\`, \`message\`, \`errors\` and \`meta\` beside them. \`code\` is one of these:`;

const OF_INTAKE = `Intake reports the faults of a call as issues. An \`error\` means that intake did not take the call, or the item of a
batch. A \`warning\` means that intake took it with a correction. Strict mode answers 400 with the issues. Permissive mode answers
200, and \`GET /v1/ingestion_issues\` lists them. Each issue has a message that names the field, the value and the bound.`;

/** The page as Markdown. */
export function errorsPage(): string {
  const errors = Object.entries(ERRORS).map(([name, meaning]) => [code(name), meaning]);
  const problems = Object.entries(PROBLEMS).map(([name, { status, meaning }]) => [
    String(status),
    code(name),
    meaning,
  ]);
  const issues = Object.entries(ISSUE_CODES).map(([name, severity]) => [code(name), severity]);
  return page(
    'Errors',
    INTRODUCTION,
    `## Errors of a process\n\n${OF_PROCESSES}`,
    table(['code', 'meaning and next action'], errors),
    `## Errors of the API\n\n${OF_CALLS}`,
    table(['status', 'code', 'meaning and next action'], problems),
    `## Issues of a call to intake\n\n${OF_INTAKE}`,
    table(['code', 'severity'], issues),
  );
}
