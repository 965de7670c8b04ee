/** Size limits of import files, from the settings. */
import type { importSettings } from '@sluice/platform/settings/config';
import type { z } from 'zod';
import type { RunImportDeps } from './run-import.ts';

export const importBoundsOf = (
  settings: z.infer<typeof importSettings> & { readonly WORKSPACE_SHARE_PERCENT: number },
): Pick<RunImportDeps, 'sizeBytesMax' | 'unfinishedSizeBytesMax' | 'storage'> => ({
  sizeBytesMax: settings.IMPORT_SIZE_BYTES_MAX,
  unfinishedSizeBytesMax: settings.IMPORT_UNFINISHED_SIZE_BYTES_MAX,
  storage: {
    sizeBytesMax: settings.IMPORT_STORAGE_SIZE_BYTES_MAX,
    sharePercent: settings.WORKSPACE_SHARE_PERCENT,
  },
});
