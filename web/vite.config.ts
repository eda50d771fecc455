import { svelte } from '@sveltejs/vite-plugin-svelte';
import { defineConfig } from 'vitest/config';
import { compiledRegl } from './compiled-regl.ts';

// The app is built straight into the Python package; `LOOKALIKE_API=http://127.0.0.1:8000 npm run dev` uses a running server.
export default defineConfig({
  base: './',
  plugins: [compiledRegl(), svelte()],
  build: {
    outDir: process.env.LOOKALIKE_STATIC ?? '../src/lookalike/server/static',
    emptyOutDir: true,
    target: 'es2022',
    modulePreload: { polyfill: false },
    assetsInlineLimit: 0,
    chunkSizeWarningLimit: 700,
  },
  optimizeDeps: { exclude: ['regl'] },
  server: { proxy: { '/api': { target: process.env.LOOKALIKE_API ?? 'http://127.0.0.1:8000', changeOrigin: true } } },
  test: { include: ['src/**/*.test.ts'], environment: 'node' },
});
