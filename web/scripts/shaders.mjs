// Write src/map/compiled.generated.js anew: the functions regl compiles at run time, which the page's policy forbids.
//   npm run shaders -- http://127.0.0.1:8000      (a running `lookalike serve` with the built app)
// The page is opened without its policy, the map is used, and what regl asked for is kept. Drivers differ in the
// extensions they offer and regl's code with them, so it is done once for each combination that occurs.
import { writeFileSync } from 'node:fs';
import { minifySync } from 'rolldown/utils';
import { browser } from './browser.mjs';

const address = process.argv[2] ?? 'http://127.0.0.1:8000';
const target = new URL('../src/map/compiled.generated.js', import.meta.url);
const ABSENT = [[], ['ANGLE_instanced_arrays'], ['OES_vertex_array_object'], ['ANGLE_instanced_arrays', 'OES_vertex_array_object'], ['WEBGL_draw_buffers'], ['EXT_disjoint_timer_query']];
const made = new Map();

for (const absent of ABSENT) {
  const opened = await browser({ bypassCSP: true });
  const page = await opened.context.newPage();
  await page.addInitScript((names) => {
    globalThis.lookalikeMade = [];
    globalThis.lookalikeRecord = (key, linked, source) => {
      globalThis.lookalikeMade.push([key, linked, source]);
      return Function.apply(null, [...linked, source]);
    };
    const original = WebGLRenderingContext.prototype.getExtension;
    WebGLRenderingContext.prototype.getExtension = function (name) {
      return names.some((each) => each.toLowerCase() === String(name).toLowerCase()) ? null : original.call(this, name);
    };
  }, absent);
  await page.goto(`${address}/#/map`);
  const map = page.locator('[data-renderer]');
  await map.waitFor({ timeout: 60_000 });
  if ((await map.getAttribute('data-renderer')) !== 'webgl') throw new Error('The map was not drawn by WebGL.');
  const box = await map.boundingBox();
  const at = (x, y) => [box.x + x * box.width, box.y + y * box.height];
  await page.mouse.move(...at(0.5, 0.5));
  await page.mouse.wheel(0, -600);
  await page.waitForTimeout(500);
  for (const [x, y] of [[0.3, 0.3], [0.5, 0.5], [0.7, 0.6]]) await page.mouse.click(...at(x, y));
  await page.getByRole('button', { name: 'Lasso', exact: true }).click();
  await page.mouse.move(...at(0.1, 0.1));
  await page.mouse.down();
  for (const [x, y] of [[0.9, 0.1], [0.9, 0.9], [0.1, 0.9], [0.1, 0.15]]) await page.mouse.move(...at(x, y), { steps: 8 });
  await page.mouse.up();
  await page.waitForTimeout(800);
  await page.getByRole('button', { name: 'Dark theme' }).click();
  await page.waitForTimeout(800);
  for (const [key, linked, source] of await page.evaluate(() => globalThis.lookalikeMade)) made.set(key, [linked, source]);
  await opened.close();
}

const sorted = [...made.entries()].sort(([a], [b]) => (a < b ? -1 : 1));
const rows = sorted.map(([key, [linked, source]]) => {
  const { code, errors } = minifySync(`${key}.js`, `const made = function(${linked.join(',')}){${source}};export{made}`, { compress: false, mangle: false, codegen: true });
  if (errors.length) throw new Error(String(errors[0]));
  return `  '${key}': ${code.replace(/^const made=/, '').replace(/;?export\{made\};?\s*$/, '')},`;
});
writeFileSync(target, `// Written by scripts/shaders.mjs: what regl 2.1 compiles for the map. Not to be edited.\nexport const COMPILED = {\n${rows.join('\n')}\n};\n`);
process.stdout.write(`${made.size} functions\n`);
