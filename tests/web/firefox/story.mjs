// The story of a conversation in Firefox, driven by WebDriver BiDi: `node story.mjs CONFIG`.
// It prints one line of JSON per step; after {"wait": …} it waits for a line on its standard input.
import { mkdirSync } from 'node:fs';
import { createInterface } from 'node:readline';
import puppeteer from 'puppeteer-core';

const { link, url, firefox, pictures } = JSON.parse(process.argv[2]);
const input = createInterface({ input: process.stdin });
const lines = input[Symbol.asyncIterator]();
const problems = [];
const report = (step) => console.log(JSON.stringify(step));

const browser = await puppeteer.launch({
  browser: 'firefox',
  executablePath: firefox,
  headless: true,
  extraPrefsFirefox: { 'intl.accept_languages': 'en-US', 'ui.prefersReducedMotion': 1 },
});
try {
  const page = await browser.newPage();
  await page.setViewport({ width: 1280, height: 860 });
  page.setDefaultTimeout(30_000);
  page.on('console', (message) => {
    if (['error', 'warn'].includes(message.type())) problems.push(`${message.type()}: ${message.text()}`);
  });
  page.on('pageerror', (error) => problems.push(`thrown: ${error.message}`));
  page.on('request', (request) => {
    if (!/^(data|blob):/.test(request.url()) && !request.url().startsWith(`${url}/`)) problems.push(`asked for ${request.url()}`);
  });

  const picture = async (name) => {
    if (!pictures) return;
    mkdirSync(pictures, { recursive: true });
    await page.screenshot({ path: `${pictures}/${name}.png` });
  };
  const say = async (text) => {
    const box = await page.waitForSelector('#main form.composer textarea.composer-text');
    await box.click();
    await box.type(text);
    await page.keyboard.press('Enter');
    await page.waitForFunction(() => location.hash.startsWith('#/s/'));
  };
  const sees = (text) =>
    page.waitForFunction((text) => document.querySelector('[role=log]')?.textContent.includes(text), {}, text);
  const idle = () => page.waitForFunction(() => !document.querySelector('[role=log] .turn-status'));
  const gate = '[data-gate][data-open][data-steady=true]';
  const press = async (label) => {
    await page.waitForSelector(gate);
    const clicked = await page.$eval(
      gate,
      (card, label) => {
        const button = [...card.querySelectorAll('button')]
          .filter((one) => one.textContent.trim().startsWith(label) && !one.textContent.includes('and stop'))
          .at(-1);
        button?.scrollIntoView({ block: 'center' });
        button?.click();
        return Boolean(button);
      },
      label,
    );
    if (!clicked) throw new Error(`the question has no button ${label}`);
  };
  const answered = async () => {
    await page.waitForFunction(() => !document.querySelector('[data-gate][data-open]'));
  };

  await page.goto(link);
  await page.click('button');
  await page.waitForFunction((url) => location.href.startsWith(`${url}/`) && document.querySelector('#main'), {}, url);
  report({ step: 'logged in' });

  await say('mail');
  await press('Allow once');
  await answered();
  await sees('sent to ann@example.org');
  await idle();
  await picture('approved');
  report({ step: 'approved' });

  await page.reload();
  await sees('sent to ann@example.org');
  report({ step: 'reloaded' });

  await say('mail');
  await press('Deny');
  await (await page.waitForSelector(`${gate} textarea, ${gate} input[type=text]`)).type('not today');
  await press('Deny');
  await answered();
  await page.waitForSelector('[data-call][data-state=denied]');
  await idle();
  report({ step: 'denied' });

  await say('plain 120 pace 30');
  await sees('word5');
  report({ wait: 'kill', session: await page.evaluate(() => location.hash) });
  await lines.next(); // the server was killed, and serves again
  await sees('word119');
  await idle();
  const text = await page.$$eval('[data-message][data-role=assistant] .part.text', (parts) => parts.at(-1).textContent);
  report({ step: 'resumed', text });
  problems.length = 0; // of the time without a server

  for (const place of ['#/inbox', '#/settings', '#/']) {
    await page.goto(`${url}/${place}`);
    await page.waitForSelector('#main');
    await new Promise((done) => setTimeout(done, 500));
    await picture(place.slice(2) || 'start');
  }
  await page.setViewport({ width: 390, height: 780 });
  await page.emulateMediaFeatures?.([{ name: 'prefers-color-scheme', value: 'dark' }]).catch(() => undefined);
  await picture('phone');
  const wide = await page.evaluate(() => document.documentElement.scrollWidth > innerWidth);
  report({ step: 'pages', wide, problems });
} finally {
  input.close();
  process.stdin.destroy();
  await browser.close();
}
