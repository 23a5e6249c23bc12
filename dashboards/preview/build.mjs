// Bundles the preview into build/: one script and its styles.
import { build } from 'esbuild';
import { fileURLToPath } from 'node:url';

const here = fileURLToPath(new URL('.', import.meta.url));

await build({
  absWorkingDir: here,
  entryPoints: ['src/main.tsx'],
  outfile: 'build/main.js',
  bundle: true,
  minify: true,
  format: 'iife',
  target: 'chrome109',
  jsx: 'automatic',
  // Scenes still imports the compatibility name of a router that is now the router itself.
  alias: {
    'react-router-dom-v5-compat': 'react-router-dom',
    'react-custom-scrollbars-2': './src/scrollbars.ts',
  },
  define: { global: 'window', 'process.env.NODE_ENV': '"production"' },
  loader: { '.svg': 'dataurl', '.woff': 'dataurl', '.woff2': 'dataurl', '.png': 'dataurl', '.ttf': 'dataurl', '.gif': 'dataurl' },
  logLevel: 'error',
});
