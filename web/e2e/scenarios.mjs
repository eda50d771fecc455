// What a person does with the app, screen by screen; each returns what the tests compare with Python.
import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';

const axe = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8');
const SCREENS = [
  '#/search', '#/search?item=ID&rerank=k-reciprocal', '#/search?tab=board&board=ID', '#/catalogue', '#/catalogue?tab=failed', '#/catalogue?open=ID', '#/map?pick=ID',
  '#/triplets', '#/triplets?tab=batch', '#/evaluate', '#/evaluate?self=1', '#/evaluate?tab=runs', '#/indexes', '#/train',
];

function equal(found, wanted, what) {
  if (JSON.stringify(found) !== JSON.stringify(wanted)) throw new Error(`${what}: ${JSON.stringify(found)} instead of ${JSON.stringify(wanted)}`);
}
function holds(condition, what) {
  if (!condition) throw new Error(what);
}

async function open(page, address, hash) {
  await page.goto('about:blank');
  await page.goto(`${address}/${hash}`);
  await page.locator('main > *').nth(1).waitFor();
  await page.waitForLoadState('networkidle');
}

const screens = (given) => SCREENS.map((hash) => hash.replaceAll('ID', given.item));
const results = (page) =>
  page.locator('.results > li').evaluateAll((rows) =>
    rows.map((row) => ({
      rank: Number(row.querySelector('.rank').textContent),
      score: row.querySelector('.score').textContent.trim(),
      id: Number(row.querySelector('.line.small .muted').textContent),
    })),
  );

async function drop(page, path) {
  const data = readFileSync(path).toString('base64');
  const transfer = await page.evaluateHandle((encoded) => {
    const bytes = Uint8Array.from(atob(encoded), (letter) => letter.charCodeAt(0));
    const made = new DataTransfer();
    made.items.add(new File([bytes], 'query.png', { type: 'image/png' }));
    return made;
  }, data);
  for (const event of ['dragenter', 'dragover', 'drop']) await page.dispatchEvent('#query', event, { dataTransfer: transfer });
}

async function lassoed(page, corners) {
  const map = page.locator('[data-renderer]');
  await map.waitFor();
  const box = await map.boundingBox();
  await page.getByRole('button', { name: 'Lasso', exact: true }).click();
  const at = (x, y) => [box.x + x * box.width, box.y + y * box.height];
  await page.mouse.move(...at(...corners[0]));
  await page.mouse.down();
  for (const corner of corners.slice(1)) await page.mouse.move(...at(...corner), { steps: 10 });
  await page.mouse.up();
  return map;
}

export const SCENARIOS = {
  async picture({ page, address, given }) {
    await open(page, address, '#/search?k=6');
    const started = Date.now();
    await drop(page, given.picture);
    await page.locator('.results > li').first().waitFor();
    const ms = Date.now() - started;
    return { ms, results: await results(page), command: await page.locator('.command code').textContent() };
  },

  async item({ page, address, given }) {
    await open(page, address, `#/search?item=${given.item}&k=8&rerank=${given.rerank ?? ''}`);
    await page.locator('.results > li').first().waitFor();
    return { results: await results(page), command: await page.locator('.command code').textContent() };
  },

  async combination({ page, address, given }) {
    await open(page, address, `#/search?item=${given.item}&k=5`);
    await page.locator('.results > li').first().waitFor();
    await page.getByRole('button', { name: /^less of item/ }).first().click();
    await page.waitForFunction(() => document.querySelectorAll('.chip').length === 2);
    await page.waitForLoadState('networkidle');
    const weights = await page.locator('.chip input').evaluateAll((all) => all.map((each) => each.value));
    await page.reload();
    await page.locator('.results > li').first().waitFor();
    equal(await page.locator('.chip').count(), 2, 'parts after a reload: they are in the address');
    equal(await page.locator('.chip.minus').count(), 1, 'parts taken away');
    return { weights };
  },

  async 'refused text'({ page, address }) {
    await open(page, address, '#/search');
    await page.keyboard.press('/');
    await page.keyboard.type('red trainers');
    await page.keyboard.press('Enter');
    const said = await page.getByRole('alert').textContent();
    equal(await page.locator('.results > li').count(), 0, 'results');
    return { said, note: await page.locator('#query-note').textContent() };
  },

  async 'self-match'({ page, address, given }) {
    await open(page, address, `#/evaluate?relevance=${given.relevance}`);
    const value = page.locator('[data-recall="1"]');
    await value.waitFor();
    const before = await value.textContent();
    const command = await page.locator('.command code').last().textContent();
    await page.getByLabel('Self-matches').check();
    await page.getByText('Not a measurement.').waitFor();
    await page.waitForFunction(() => document.querySelector('[data-recall="1"]').textContent === '1.000');
    await page.getByLabel('Self-matches').uncheck();
    await page.waitForFunction((text) => document.querySelector('[data-recall="1"]').textContent === text, before);
    await page.getByRole('slider', { name: /^K/ }).fill('5');
    return { before, command, at5: await page.locator('[data-recall="5"]').textContent() };
  },

  async triplet({ page, address, given }) {
    const [a, p, n] = given.triplet;
    await open(page, address, `#/triplets?a=${a}&p=${p}&n=${n}&margin=0.2`);
    const corner = page.locator('[data-corner="n"]');
    await corner.waitFor();
    const read = async () => ({
      plain: await page.locator('[data-loss="plain"]').textContent(),
      squared: await page.locator('[data-loss="squared"]').textContent(),
      python: [await page.locator('[data-python="plain"]').textContent(), await page.locator('[data-python="squared"]').textContent()],
      command: await page.locator('.command code').textContent(),
    });
    const before = await read();
    const from = await corner.boundingBox();
    const to = await page.locator('[data-corner="a"]').boundingBox();
    await page.mouse.move(from.x + from.width / 2, from.y + 20);
    await page.mouse.down();
    await page.mouse.move((from.x + 2 * to.x) / 3 + from.width / 2, (from.y + 2 * to.y) / 3 + 20, { steps: 12 });
    await page.mouse.up();
    const settled = () => {
      const text = (name) => document.querySelector(name).textContent;
      return text('[data-python="plain"]') === text('[data-loss="plain"]') && text('[data-python="squared"]') === text('[data-loss="squared"]');
    };
    await page.waitForFunction(settled);
    const dragged = await read();
    await corner.focus();
    await page.keyboard.press('Shift+ArrowRight');
    await page.waitForFunction((old) => document.querySelector('.command code').textContent !== old, dragged.command);
    await page.waitForFunction(settled);
    return { before, dragged, byKey: await read() };
  },

  async batch({ page, address, given }) {
    await open(page, address, `#/triplets?tab=batch&P=3&K=4&label=${given.relevance}`);
    const heading = page.getByRole('heading', { name: /valid triplets/ });
    return { heading: await heading.textContent(), rows: await page.getByRole('button', { name: 'Look at it' }).count() };
  },

  async nprobe({ page, address }) {
    await open(page, address, '#/indexes?kind=ivf');
    await page.getByRole('button', { name: 'Measure ivf' }).click();
    await page.locator('[data-overlap]').waitFor();
    const before = await page.locator('[data-overlap]').textContent();
    const slider = page.getByRole('slider', { name: /nprobe/ });
    await slider.focus();
    for (let step = 0; step < 8; step += 1) await page.keyboard.press('ArrowLeft');
    await page.getByRole('cell', { name: /nprobe=1$/ }).waitFor();
    await page.waitForFunction(() => document.querySelector('dl dt')?.textContent.includes('nprobe=1'));
    const tags = await page.locator('dl .measured, dl .exact, dl .estimated').count();
    holds(tags === 4, `four tagged values, not ${tags}`);
    return { before, after: await page.locator('[data-overlap]').textContent(), command: await page.locator('.command code').first().textContent() };
  },

  async bytes({ page, address }) {
    await open(page, address, '#/indexes?kind=ivf-pq&n=1000000&d=512&set=%7B%22m%22%3A64%2C%22nlist%22%3A4000%7D');
    const row = page.getByRole('row', { name: /^structure, total/ });
    return { total: await row.locator('td').first().getAttribute('title'), command: await page.locator('.command code').first().textContent() };
  },

  async lasso({ page, address }) {
    await open(page, address, '#/map');
    const map = await lassoed(page, [[0.02, 0.02], [0.98, 0.02], [0.98, 0.98], [0.02, 0.98], [0.02, 0.05]]);
    const heading = page.getByText(/^\d+ items selected$/);
    await heading.waitFor();
    const waiting = page.waitForEvent('download');
    await page.getByRole('button', { name: 'Export CSV' }).click();
    const saved = readFileSync(await (await waiting).path(), 'utf8');
    return { renderer: await map.getAttribute('data-renderer'), heading: await heading.textContent(), rows: saved.trim().split('\r\n') };
  },

  async 'map by keyboard'({ page, address }) {
    await open(page, address, '#/map');
    await page.locator('[data-renderer]').waitFor();
    await page.locator('[role=application]').focus();
    for (const key of ['+', '+', '+', 'ArrowLeft', 'Enter']) await page.keyboard.press(key);
    await page.getByRole('heading', { name: 'By cosine' }).waitFor();
    await page.getByRole('heading', { name: 'By raw dot' }).waitFor();
    return { address: page.url() };
  },

  async 'canvas fallback'({ page, address }) {
    await page.goto(`${address}/?canvas#/map`);
    const map = page.locator('[data-renderer]');
    await map.waitFor();
    equal(await map.getAttribute('data-renderer'), 'canvas', 'renderer');
    const note = await page.locator('.map .note').textContent();
    const box = await map.boundingBox();
    await page.getByRole('button', { name: 'Lasso', exact: true }).click();
    await page.mouse.move(box.x + 5, box.y + 5);
    await page.mouse.down();
    for (const [x, y] of [[0.99, 0.01], [0.99, 0.99], [0.01, 0.99], [0.01, 0.02]]) await page.mouse.move(box.x + x * box.width, box.y + y * box.height, { steps: 5 });
    await page.mouse.up();
    return { note, heading: await page.getByText(/^\d+ items selected$/).textContent() };
  },

  async keyboard({ page, address, given }) {
    await open(page, address, '#/evaluate');
    await page.keyboard.press('/');
    await page.waitForFunction(() => document.activeElement?.id === 'query');
    await page.keyboard.type(String(given.item));
    await page.keyboard.press('Enter');
    await page.locator('.results > li').first().waitFor();
    await page.keyboard.press('ArrowDown');
    await page.keyboard.press('ArrowRight');
    await page.keyboard.press('ArrowRight');
    const focused = await page.evaluate(() => document.activeElement.getAttribute('aria-label'));
    holds(/^Rank 3,/.test(focused), `the third candidate has the focus, not ${focused}`);
    await page.keyboard.press('Enter');
    await page.locator('dialog[open]').waitFor();
    await page.keyboard.press('Escape');
    await page.waitForFunction(() => !document.querySelector('dialog'));
    const back = await page.evaluate(() => document.activeElement.getAttribute('aria-label'));
    equal(back, focused, 'the focus after closing');
    await page.keyboard.press('2');
    await page.locator('[data-at="0"]').waitFor();
    await page.locator('[data-at="0"]').focus();
    await page.keyboard.press('ArrowRight');
    await page.keyboard.press('ArrowDown');
    await page.waitForFunction(() => Number(document.activeElement?.dataset.at) > 1);
    return { focused };
  },

  async theme({ page, address }) {
    const colour = () => page.evaluate(() => getComputedStyle(document.body).backgroundColor);
    await page.emulateMedia({ colorScheme: 'dark' });
    await open(page, address, '#/search');
    const dark = await colour();
    await page.getByRole('button', { name: 'Dark theme' }).click();
    const light = await colour();
    await page.reload();
    await page.locator('.results, .tiles').first().waitFor();
    equal(await colour(), light, 'the switch is remembered');
    holds(dark !== light, 'the themes differ');
    return { dark, light };
  },

  async narrow({ page, address, given }) {
    await page.setViewportSize({ width: 390, height: 844 });
    for (const hash of screens(given)) {
      await open(page, address, hash);
      const wide = await page.evaluate(() => Math.max(document.documentElement.scrollWidth, document.getElementById('main').scrollWidth));
      holds(wide <= 390, `${hash} is ${wide} pixels wide on a screen of 390`);
      const nav = await page.getByRole('navigation').boundingBox();
      holds(nav.y + nav.height <= 845, `${hash}: the screens can be reached`);
    }
  },

  async accessible({ page, address, given }) {
    const found = [];
    for (const scheme of ['light', 'dark']) {
      await page.emulateMedia({ colorScheme: scheme });
      for (const hash of screens(given)) {
        await open(page, address, hash);
        await page.waitForTimeout(200);
        await page.evaluate(`if (!window.axe) { ${axe} }`);
        const { violations } = await page.evaluate(() => window.axe.run(document, { runOnly: ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa'] }));
        for (const each of violations.filter((one) => ['serious', 'critical'].includes(one.impact))) {
          found.push(`${scheme} ${hash}: ${each.id}: ${each.help}: ${each.nodes.slice(0, 3).map((node) => `${node.html.slice(0, 160)} ${node.failureSummary?.split('\n')[1] ?? ''}`).join(' | ')}`);
        }
      }
    }
    holds(found.length === 0, found.join('\n'));
  },

  async facets({ page, address, given }) {
    await open(page, address, '#/catalogue');
    await page.getByRole('checkbox', { name: new RegExp(given.value) }).check();
    await page.waitForFunction(() => /^\d+ items$/.test(document.querySelector('.grid [role=status]')?.textContent ?? ''));
    await page.waitForLoadState('networkidle');
    return { status: await page.locator('.grid [role=status]').first().textContent(), command: await page.locator('.command code').textContent() };
  },

  async 'failed files'({ page, address }) {
    await open(page, address, '#/catalogue?tab=failed');
    return { rows: await page.locator('tbody tr').allTextContents() };
  },

  async runs({ page, address, given }) {
    await open(page, address, `#/evaluate?tab=runs&relevance=${given.relevance}`);
    for (const rerank of ['', 'k-reciprocal']) {
      await page.getByLabel('Re-rank').selectOption(rerank);
      const rows = await page.locator('tbody tr').count();
      await page.getByRole('button', { name: 'Evaluate and save' }).click();
      await page.waitForFunction((n) => document.querySelectorAll('tbody tr').length > n, rows, { timeout: 60_000 });
    }
    for (const box of await page.getByRole('checkbox', { name: /^Compare/ }).all()) await box.check();
    await page.getByRole('heading', { name: /against/ }).waitFor();
    const compared = await page.locator('section').last().locator('tbody tr').first().textContent();
    await page.locator('td button.plain').first().click();
    const report = await page.locator('pre').textContent();
    await page.getByRole('button', { name: 'Colour the map by its hits' }).click();
    await page.locator('[data-renderer]').waitFor();
    await page.getByText('did not ask').waitFor();
    return { compared, report };
  },

  async large({ page, address, given }) {
    await open(page, address, '#/catalogue');
    await page.locator('[data-at="0"]').waitFor();
    const box = page.getByRole('group', { name: 'Items of the catalogue' });
    let most = 0;
    for (const share of [0, 0.2, 0.4, 0.6, 0.8, 1]) {
      await box.evaluate((node, at) => (node.scrollTop = at * (node.scrollHeight - node.clientHeight)), share);
      await page.waitForTimeout(150);
      most = Math.max(most, await page.locator('[data-at]').count());
    }
    const last = await page.locator('[data-at]').last().getAttribute('data-at');
    equal(Number(last), given.n - 1, 'the last item can be reached');
    const frames = await box.evaluate(
      (node) =>
        new Promise((resolve) => {
          const times = [];
          let before = performance.now();
          const step = (now) => {
            times.push(now - before);
            before = now;
            node.scrollTop -= 90;
            if (times.length < 90) requestAnimationFrame(step);
            else resolve(times.sort((a, b) => a - b)[80]);
          };
          requestAnimationFrame(step);
        }),
    );
    await page.goto('about:blank');
    const started = Date.now();
    await page.goto(`${address}/#/map`);
    const map = page.locator('[data-renderer]');
    await map.waitFor({ timeout: 60_000 });
    return { most, frame_ms_p90: frames, map_ms: Date.now() - started, renderer: await map.getAttribute('data-renderer'), drawn_ms: Number(await map.getAttribute('data-drawn-ms')) };
  },
};
