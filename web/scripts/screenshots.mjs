// Pictures of every screen, for the documentation and for looking at:
//   npm run screenshots -- http://127.0.0.1:8000 ../docs/screenshots [name,name] [desktop-light,phone-dark]
import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { browser } from './browser.mjs';

const [address = 'http://127.0.0.1:8000', folder = '../docs/screenshots', only = '', kinds = 'desktop-light,desktop-dark,phone-light,phone-dark'] = process.argv.slice(2);
mkdirSync(folder, { recursive: true });

const SCREENS = {
  start: ['#/search'],
  search: ['#/search?item=11&rerank=k-reciprocal'],
  'search-board': ['#/search?tab=board&board=11%0A203%0A431'],
  catalogue: ['#/catalogue'],
  item: ['#/catalogue?open=11'],
  map: ['#/map?pick=11'],
  'map-lasso': ['#/map', lasso],
  triplets: ['#/triplets?a=156&p=177&n=535&margin=0.3'],
  'triplets-batch': ['#/triplets?tab=batch'],
  evaluate: ['#/evaluate?relevance=identity'],
  'evaluate-self': ['#/evaluate?relevance=identity&self=1'],
  'evaluate-runs': ['#/evaluate?tab=runs&relevance=identity', compare],
  indexes: ['#/indexes?kind=ivf&latency=2', tune],
  train: ['#/train'],
};
const SIZES = { desktop: { width: 1280, height: 800 }, phone: { width: 390, height: 844 } };

async function compare(page) {
  for (const box of (await page.getByRole('checkbox', { name: /^Compare/ }).all()).slice(0, 2)) await box.check();
}

async function tune(page) {
  await page.getByRole('button', { name: 'Try all kinds and choose' }).click();
  await page.locator('figure').waitFor({ timeout: 120_000 });
  await page.locator('figure').scrollIntoViewIfNeeded();
}

async function lasso(page) {
  const box = await page.locator('[data-renderer]').boundingBox();
  await page.getByRole('button', { name: 'Lasso', exact: true }).click();
  const at = (x, y) => [box.x + x * box.width, box.y + y * box.height];
  await page.mouse.move(...at(0.25, 0.2));
  await page.mouse.down();
  for (const [x, y] of [[0.5, 0.2], [0.5, 0.5], [0.25, 0.5], [0.25, 0.22]]) await page.mouse.move(...at(x, y), { steps: 8 });
  await page.mouse.up();
}

const opened = await browser();
const wanted = only ? only.split(',') : Object.keys(SCREENS);
for (const [size, viewport] of Object.entries(SIZES)) {
  for (const scheme of ['light', 'dark'].filter((each) => kinds.split(',').includes(`${size}-${each}`))) {
    const page = await opened.context.newPage();
    page.on('pageerror', (error) => process.stdout.write(`page error: ${error.message}\n`));
    page.on('console', (message) => message.type() === 'error' && process.stdout.write(`console: ${message.text()}\n`));
    await page.setViewportSize(viewport);
    await page.emulateMedia({ colorScheme: scheme });
    for (const name of wanted) {
      const [hash, act] = SCREENS[name];
      await page.goto(`${address}/${hash}`);
      await page.reload();
      await page.waitForLoadState('networkidle');
      if (hash.startsWith('#/map')) await page.locator('[data-renderer]').waitFor();
      if (act) await act(page);
      await page.waitForTimeout(act ? 2500 : 500);
      await page.screenshot({ path: join(folder, `${name}-${size}-${scheme}.jpg`), type: 'jpeg', quality: 90 });
    }
    await page.close();
  }
}
await opened.close();
