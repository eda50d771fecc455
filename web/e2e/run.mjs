// One scenario in a real browser: node e2e/run.mjs SCENARIO ADDRESS [JSON]. What it found goes to standard output as JSON;
// a scenario that fails exits with 1 and says why. tests/web runs them against a server of its own.
import { browser } from '../scripts/browser.mjs';
import { SCENARIOS } from './scenarios.mjs';

const [name, address, given = '{}'] = process.argv.slice(2);
const scenario = SCENARIOS[name];
if (!scenario) throw new Error(`No scenario ${name}: ${Object.keys(SCENARIOS).join(', ')}`);

const opened = await browser({ acceptDownloads: true });
const page = await opened.context.newPage();
const trouble = [];
page.on('pageerror', (error) => trouble.push(`page error: ${error.message}`));
page.on('console', (message) => {
  // A refusal is an answer; Chromium reports its status as an error of the page.
  if (message.type() === 'error' && !/status of 4\d\d/.test(message.text())) trouble.push(`console: ${message.text()}`);
});
page.on('request', (request) => {
  if (!request.url().startsWith(address) && !/^(blob|data):/.test(request.url())) trouble.push(`asked elsewhere: ${request.url()}`);
});
try {
  const found = await scenario({ page, address: address.replace(/\/$/, ''), given: JSON.parse(given) });
  if (trouble.length) throw new Error(trouble.join('\n'));
  process.stdout.write(`${JSON.stringify(found ?? {})}\n`);
} catch (error) {
  await page.screenshot({ path: process.env.LOOKALIKE_FAILED ?? '/dev/null', type: 'png' }).catch(() => undefined);
  process.stderr.write(`${error.stack}\n${trouble.join('\n')}\n`);
  process.exitCode = 1;
} finally {
  await opened.close();
}
