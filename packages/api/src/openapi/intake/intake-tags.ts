/** Groups of intake's calls, and their keys. They are part of the one description of both services (`openapi.ts`). */
import { NESTING_DEPTH_MAX } from '@sluice/domain/operations/limits';

/** Rules that no single schema has. */
const VALUES = `Intake measures sizes in bytes of UTF-8, after decompression. It treats a missing value, \`null\` and a blank text alike. It removes blanks at both ends of names and identifiers, and reads a number as an identifier of its digits. Structures have at most ${NESTING_DEPTH_MAX} levels, and numbers the range of a double. Intake reads any \`Content-Type\` as JSON.`;

export const INTAKE_TAGS = [
  {
    name: 'pipelines',
    description: `Events of the Pipelines API. Sent to intake, with a write key. ${VALUES}`,
  },
  {
    name: 'track',
    description: `Events of the Track API. Sent to intake, with a site id and its key. With \`X-Strict-Mode: 1\` intake refuses a value that it otherwise corrects. ${VALUES}`,
  },
];

export const INTAKE_SECURITY_SCHEMES = {
  write_key: {
    type: 'http',
    scheme: 'basic',
    description: 'The write key is the username, the password is empty. `Bearer` is taken too.',
  },
  site_key: {
    type: 'http',
    scheme: 'basic',
    description: 'The site id is the username, its API key the password.',
  },
} as const;
