/** For `node --import`: everything that shortens the loading of a service's modules. The modules do the same without it. */
await import('./keep-stripped-types.mjs');
await import('./resolve-imports.mjs');
