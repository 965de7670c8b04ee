/** JSON logs by pino, with what must never be logged taken out. */
import { pino, type Logger } from 'pino';
import { errorForLog } from './error-for-log.ts';

export type { Logger };

/** A process's root logger. Errors keep their code and cause. */
export function createLogger(service: string, level: string): Logger {
  return pino({
    level,
    base: { service },
    timestamp: pino.stdTimeFunctions.isoTime,
    serializers: { error: (error: unknown) => errorForLog(error) },
    redact: [
      'authorization',
      '*.authorization',
      'headers.authorization',
      'signingKey',
      '*.signingKey',
    ],
  });
}
