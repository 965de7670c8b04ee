/**
 * Part of `npm run check`: Redocly and Spectral judge the description of both services. A warning fails the check too. It
 * needs no network, since the description refers to no other file.
 */
import { describeServices } from './described-api.ts';
import { findingsOf } from './description-findings.ts';

const findings = await findingsOf(await describeServices());
for (const each of findings) console.error(each);
process.exitCode = findings.length === 0 ? 0 : 1;
