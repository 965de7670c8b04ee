/** Format of the backups that `backup.ts` writes and `restore.ts` reads. */

/** In the backup's folder; written last, so that one without it is not whole. */
export const MANIFEST = 'backup.json';
/** Of its layout; a version that changes it reads the older ones too. */
export const BACKUP_FORMAT = 1;
