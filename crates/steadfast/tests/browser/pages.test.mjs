// Every page in a real browser: what it shows, what can be done on it, and that it stays live.
import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";

import { Lab } from "./lab.mjs";

const text = (page, selector) => page.locator(selector).first().innerText();

describe("a day of goals and runs", { concurrency: false }, () => {
  let lab;
  let page;

  before(async () => {
    lab = await Lab.open();
    await lab.goal("s1", "Every test in parser passes", "--budget", "100k", "--max-turns", "20", "--verify", "true");
    for (const tokens of [9_000, 12_000, 7_000]) await lab.answer("s1", tokens);
    await lab.goal("s2", "Rename the shop", "--max-hours", "2");
    await lab.person("goal", "block", "--reason", "Which name should it have?", "--session", "s2");
    await lab.goal("s3", "Sign me", "--sign-off", "--item", "The page is blue");
    await lab.goal("s4", "Was given up");
    await lab.person("goal", "abandon", "--session", "s4");
    const agent = await lab.loop("slow", 'echo "working on $STEADFAST_ITERATION"; while [ ! -e "$HOME/go" ]; do sleep 0.1; done; echo ended');
    await lab.person("loop", "run", "slow", "night", "--agent", agent, "--detach");
    page = await lab.browse({ link: await lab.serve() });
  });

  after(async () => {
    await lab?.person("loop", "kill", "night").catch(() => {});
    await lab?.close();
  });

  it("the first page shows what needs the user before all else", async () => {
    const headings = await page.locator("main h2").allInnerTexts();
    assert.match(headings[0], /^Needs you/);
    assert.match(await text(page, "#needs"), /Which name should it have\?/);
    assert.match(await text(page, "#working"), /Every test in parser passes/);
    assert.match(await text(page, "#working"), /of 100,000 tokens/);
    assert.match(await text(page, "#runs"), /night/);
    assert.match(await text(page, "#ended"), /Was given up/);
    assert.match(await text(page, "#ended"), /abandoned/i);
    await lab.shot(page, "now-light");
  });

  it("a change made elsewhere appears by itself, and what was typed stays", async () => {
    await page.locator("#search").fill("half a wo");
    await lab.person("goal", "pause", "--session", "s1");
    await page.locator("#waiting", { hasText: "Every test in parser passes" }).waitFor();
    assert.equal(await page.locator("#search").inputValue(), "half a wo");
    await page.locator("#search").fill("");
    await lab.person("goal", "resume", "--session", "s1");
    await page.locator("main", { hasText: "Every test in parser passes" }).waitFor();
  });

  it("a goal is extended, paused and resumed from its page", async () => {
    const id = (await lab.json("goal", "status", "--session", "s1")).goal.goal_id;
    await page.goto(`${lab.origin}/goals/${id}`);
    assert.match(await text(page, "h1"), /Every test in parser passes/);
    assert.ok(await page.locator("svg[role=img]").count(), "the page has a chart");
    await lab.shot(page, "goal-light");
    await page.getByText("Extend…").first().click();
    await page.locator('form[action$="/extend"] input[name=tokens]').first().fill("50000");
    await page.locator('form[action$="/extend"] button').first().click();
    await page.locator("#notice").waitFor();
    assert.equal((await lab.json("goal", "status", "--session", "s1")).goal.token_budget, 150_000);
    await page.getByRole("button", { name: "Pause", exact: true }).first().click();
    await page.locator("#notice").waitFor();
    assert.equal((await lab.json("goal", "status", "--session", "s1")).goal.status, "paused");
    await page.getByRole("button", { name: "Resume", exact: true }).first().click();
    await page.locator('main form[action$="/pause"]').first().waitFor();
    assert.equal((await lab.json("goal", "status", "--session", "s1")).goal.status, "active");
  });

  it("verification runs from the page, and its evidence appears", async () => {
    await page.getByRole("button", { name: "Verify", exact: true }).first().click();
    await page.locator("details.check", { hasText: "passed" }).first().waitFor();
    const report = await lab.json("goal", "report", "--session", "s1");
    assert.equal(report.checks[0].result.passed, true);
  });

  it("what cannot be undone is asked first", async () => {
    await page.goto(`${lab.origin}/`);
    const card = page.locator("#needs article", { hasText: "Rename the shop" });
    await card.locator("summary", { hasText: "Abandon" }).click();
    await page.locator("dialog[open]").waitFor();
    assert.match(await text(page, "dialog[open]"), /cannot be resumed/);
    await page.locator("#ask-no").click();
    assert.equal((await lab.json("goal", "status", "--session", "s2")).goal.status, "blocked");
    await card.getByRole("button", { name: "Resume", exact: true }).click();
    await page.locator("#notice").waitFor();
    assert.equal((await lab.json("goal", "status", "--session", "s2")).goal.status, "active");
  });

  it("a run shows its output as it is written, reads what is said to it, and is killed", async () => {
    const { run_id } = await lab.json("loop", "status", "night");
    await page.goto(`${lab.origin}/runs/${run_id}`);
    await page.locator("pre.log", { hasText: "working on 1" }).waitFor();
    await lab.shot(page, "run-light");
    await page.locator("textarea[name=text]").last().fill("mind the <b>tests</b>");
    await page.getByRole("button", { name: "Say it" }).last().click();
    await page.locator("main", { hasText: "mind the <b>tests</b>" }).waitFor();
    // Before the script of the new page has run, the menu opens in its place.
    await page.waitForLoadState();
    await page.locator("summary", { hasText: "Kill" }).first().click();
    await page.locator("dialog[open] button.danger").click();
    await page.locator("#notice").waitFor();
    assert.equal((await lab.json("loop", "status", "night")).status, "killed");
  });

  it("an approval is answered on the page, and a sign-off completes its goal", async () => {
    const { writeFile, mkdir } = await import("node:fs/promises");
    await mkdir(`${lab.root}/home/pipelines`, { recursive: true });
    const yaml = "name: ship\ndefaults: {delay: 0}\nstages:\n  - {name: build, prompt: go}\n  - {name: deploy, prompt: go, approve: 'Ship it?'}\n";
    await writeFile(`${lab.root}/home/pipelines/ship.yaml`, yaml);
    await lab.person("pipeline", "run", "ship", "ship", "--agent", "sh -c 'cat > /dev/null; echo fine'", "--detach");
    await page.goto(`${lab.origin}/`);
    await page.locator("#needs article", { hasText: "Ship it?" }).getByRole("button", { name: "Approve", exact: true }).click();
    await page.locator("#notice").waitFor();
    for (let tries = 0; (await lab.json("pipeline", "status", "ship")).status !== "completed"; tries += 1) {
      assert.ok(tries < 600, "the pipeline completes after its approval");
      await new Promise((done) => setTimeout(done, 100));
    }
  });

  it("usage, search and help are pages too", async () => {
    await page.goto(`${lab.origin}/usage`);
    assert.ok(await page.locator("main h1, main h2").count());
    await lab.shot(page, "usage-light");
    await page.goto(`${lab.origin}/search?q=parser`);
    assert.match(await text(page, "main"), /Every test in parser passes/);
    await page.goto(`${lab.origin}/help`);
    assert.match(await text(page, "main"), /pause/i);
  });

  it("the keyboard is enough", async () => {
    await page.goto(`${lab.origin}/`);
    await page.keyboard.press("j");
    assert.ok(await page.evaluate(() => document.activeElement.closest("[data-item]") !== null));
    await page.keyboard.press("Enter");
    await page.waitForURL(/\/(goals|runs)\//);
    await page.keyboard.press("g");
    await page.keyboard.press("u");
    await page.waitForURL(/\/usage/);
    await page.keyboard.press("g");
    await page.keyboard.press("n");
    await page.waitForURL(`${lab.origin}/`);
    await page.keyboard.press("/");
    assert.equal(await page.evaluate(() => document.activeElement.id), "search");
    await page.keyboard.type("parser");
    await page.keyboard.press("Enter");
    await page.waitForURL(/\/search/);
    await page.keyboard.press("Escape");
    await page.locator("body").press("?");
    await page.locator("main", { hasText: /keys/i }).first().waitFor();
  });

  it("no page printed an error or asked another host for anything", () => {
    assert.deepEqual(lab.troubles, []);
  });

  it("every page works without scripts", async () => {
    const cookies = await lab.context.cookies();
    const plain = await lab.browser.newContext({ javaScriptEnabled: false });
    await plain.addCookies(cookies);
    const still = await plain.newPage();
    await still.goto(`${lab.origin}/`);
    assert.match(await still.locator("main").innerText(), /Sign me|Every test/);
    const card = still.locator("article, li", { hasText: "Every test in parser passes" }).first();
    await card.getByRole("button", { name: "Pause", exact: true }).click();
    assert.equal((await lab.json("goal", "status", "--session", "s1")).goal.status, "paused");
    await plain.close();
  });
});
