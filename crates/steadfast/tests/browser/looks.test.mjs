// What a page looks like and is made of: hostile text, narrow screens, contrast, dark mode, read-only, a lost server.
import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { createRequire } from "node:module";
import { after, before, describe, it } from "node:test";

import { Lab } from "./lab.mjs";

const HOSTILE = `<script>window.hacked = 1</script><img src=x onerror="window.hacked = 2">"><svg onload=hacked=3> {{ 7 * 7 }} \u202Eevil`;

describe("the look of the pages", { concurrency: false }, () => {
  let lab;
  let page;
  let paths;
  let axe;

  before(async () => {
    axe = await readFile(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");
    lab = await Lab.open();
    await lab.goal("s1", HOSTILE, "--budget", "10k", "--max-turns", "9", "--item", HOSTILE);
    await lab.answer("s1", 4_000);
    await lab.goal("s2", `A very long objective ${"without-any-break".repeat(60)}`);
    await lab.goal("s3", "Blocked");
    await lab.person("goal", "block", "--reason", HOSTILE, "--session", "s3");
    const agent = await lab.loop("words", `printf '%s\\n' '<script>window.hacked = 4</script>' '\\033[31mred\\033[0m'`);
    await lab.person("loop", "run", "words", "words", "--agent", agent, "--max", "2");
    page = await lab.browse({ link: await lab.serve() });
    const goal = (await lab.json("goal", "status", "--session", "s1")).goal.goal_id;
    const { run_id } = await lab.json("loop", "status", "words");
    paths = { now: "/", goal: `/goals/${goal}`, run: `/runs/${run_id}`, usage: "/usage", search: "/search?q=script", help: "/help" };
  });

  after(() => lab?.close());

  it("hostile text is inert on every page", async () => {
    for (const path of Object.values(paths)) {
      await page.goto(lab.origin + path);
      assert.equal(await page.evaluate(() => window.hacked), undefined, path);
      assert.equal(await page.locator("main img, main script").count(), 0, path);
    }
    assert.match(await page.goto(lab.origin + paths.goal).then(() => page.locator("main").innerText()), /<script>window\.hacked = 1<\/script>/);
    assert.match(await page.goto(lab.origin + paths.run).then(() => page.locator("main").innerText()), /window\.hacked = 4/);
  });

  it("nothing scrolls sideways on a phone", async () => {
    await page.setViewportSize({ width: 380, height: 800 });
    for (const [name, path] of Object.entries(paths)) {
      await page.goto(lab.origin + path);
      const wider = await page.evaluate(() => document.documentElement.scrollWidth - document.documentElement.clientWidth);
      assert.ok(wider <= 0, `${name} is ${wider} px wider than the screen`);
      await lab.shot(page, `${name}-phone`);
    }
    await page.setViewportSize({ width: 1280, height: 900 });
  });

  for (const scheme of ["light", "dark"]) {
    it(`axe finds no fault in ${scheme} pages`, async () => {
      await page.emulateMedia({ colorScheme: scheme, reducedMotion: "reduce" });
      for (const [name, path] of Object.entries(paths)) {
        await page.goto(lab.origin + path);
        // A strict policy forbids added scripts; evaluating does not add one.
        await page.evaluate(axe);
        const { violations } = await page.evaluate(() => window.axe.run(document, { runOnly: ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa"] }));
        const found = violations.map((fault) => `${fault.id}: ${fault.nodes.slice(0, 3).map((node) => node.html.slice(0, 120)).join(" | ")}`);
        assert.deepEqual(found, [], `${name} in ${scheme}`);
        await lab.shot(page, `${name}-${scheme}-axe`);
      }
    });
  }

  it("the first load is small", async () => {
    let bytes = 0;
    const count = async (response) => (bytes += (await response.body().catch(() => "")).length);
    page.on("response", count);
    await page.goto(`${lab.origin}/`, { waitUntil: "load" });
    await page.waitForTimeout(300);
    page.off("response", count);
    assert.ok(bytes > 1_000 && bytes < 150_000, `${bytes} bytes`);
  });

  it("no page printed an error or asked another host for anything", () => {
    assert.deepEqual(lab.troubles, []);
  });

  it("a page says when its server is gone", async () => {
    await page.goto(`${lab.origin}/`);
    await page.locator("#fresh.live").waitFor();
    lab.server.kill("SIGTERM");
    await page.locator("#fresh.lost").waitFor();
    assert.match(await page.locator("#fresh").innerText(), /lost/);
  });
});

describe("read-only", { concurrency: false }, () => {
  it("shows no button, and a link works once", async () => {
    const lab = await Lab.open();
    try {
      await lab.goal("s1", "Look, do not touch", "--max-turns", "5");
      const link = await lab.serve("--read-only");
      const page = await lab.browse({ link });
      assert.match(await page.locator("main").innerText(), /Look, do not touch/);
      assert.equal(await page.locator('form[method="post"]').count(), 0);
      const second = await lab.browser.newContext();
      const other = await second.newPage();
      const answer = await other.goto(link);
      assert.equal(answer.status(), 403);
      assert.equal((await other.goto(`${lab.origin}/`)).status(), 403);
      await second.close();
    } finally {
      await lab.close();
    }
  });
});
