// A home, a project, a client and `steadfast ui`, all in a directory of their own, and a real Chromium that looks at it.
import { execFile, spawn } from "node:child_process";
import { appendFile, mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { promisify } from "node:util";

import { chromium } from "playwright-core";

const run = promisify(execFile);
const BINARY = process.env.STEADFAST_BINARY;
const SHOTS = process.env.STEADFAST_SHOTS;
// Longer than anything takes on a loaded machine.
export const PATIENCE = 60_000;
const FLAGS = [
  "--no-sandbox",
  "--disable-gpu",
  "--disable-quic",
  "--no-first-run",
  "--disable-background-networking",
  "--disable-component-update",
  "--disable-sync",
];

export class Lab {
  static async open(options = []) {
    const lab = new Lab();
    lab.root = await mkdtemp(join(tmpdir(), "steadfast-browser-"));
    lab.project = join(lab.root, "shop");
    await mkdir(lab.project);
    lab.environment = {
      PATH: process.env.PATH,
      HOME: lab.root,
      STEADFAST_HOME: join(lab.root, "home"),
      CLAUDE_CONFIG_DIR: join(lab.root, "claude"),
      CODEX_HOME: join(lab.root, "codex"),
      STEADFAST_NO_WATCH: "1",
      TZ: "UTC",
      NO_COLOR: "1",
    };
    lab.answers = 0;
    lab.client = spawn(process.execPath, [new URL("client.mjs", import.meta.url).pathname, BINARY], {
      env: lab.environment,
      cwd: lab.project,
      stdio: ["pipe", "pipe", "inherit"],
      detached: true,
    });
    lab.said = createInterface({ input: lab.client.stdout })[Symbol.asyncIterator]();
    lab.options = options;
    return lab;
  }

  // A command of a person.
  async person(...words) {
    const { stdout } = await run(BINARY, words, { env: this.environment, cwd: this.project });
    return stdout;
  }

  async json(...words) {
    return JSON.parse(await this.person(...words, "--json"));
  }

  transcript(session) {
    return join(this.root, `${session}.jsonl`);
  }

  async hook(session, name, fields = {}) {
    const event = { session_id: session, transcript_path: this.transcript(session), cwd: this.project, hook_event_name: name };
    this.client.stdin.write(`${JSON.stringify({ ...event, ...fields })}\n`);
    const { value } = await this.said.next();
    return JSON.parse(value);
  }

  // A session with a goal and a turn that runs.
  async goal(session, objective, ...flags) {
    await writeFile(this.transcript(session), "");
    await this.hook(session, "SessionStart", { source: "startup" });
    await this.person("goal", "start", "--session", session, ...flags, "--", objective);
    await this.hook(session, "UserPromptSubmit", { prompt: "please begin" });
  }

  // The model answers in the middle of the turn, and used a tool.
  async answer(session, tokens) {
    this.answers += 1;
    const id = `toolu_${this.answers}`;
    const content = [{ type: "tool_use", id, name: "Bash", input: { command: "cargo test" } }];
    const usage = { input_tokens: tokens, output_tokens: 5, cache_creation_input_tokens: 0, cache_read_input_tokens: 10 };
    const message = { id: `msg_${this.answers}`, model: "claude-opus-4-5", role: "assistant", content, usage };
    const line = { type: "assistant", uuid: `u${this.answers}`, timestamp: new Date().toISOString(), message };
    await appendFile(this.transcript(session), `${JSON.stringify(line)}\n`);
    const tool = { tool_name: "Bash", tool_use_id: id, tool_input: { command: "cargo test" } };
    await this.hook(session, "PostToolUse", { ...tool, tool_response: { stdout: "ok", stderr: "" } });
    await this.hook(session, "PostToolBatch", { tool_calls: [{ ...tool, tool_response: { stdout: "ok" } }] });
  }

  // A loop type whose agent is a shell script.
  async loop(name, script, yaml = "") {
    const folder = join(this.root, "home", "loops", name);
    await mkdir(folder, { recursive: true });
    await writeFile(join(folder, "loop.yaml"), `name: ${name}\ndelay: 0\ncompletion: fixed-n\nruns: 3\n${yaml}`);
    await writeFile(join(folder, "prompt.md"), "Do it: ${ITERATION}\n");
    const agent = join(this.root, `${name}.sh`);
    await writeFile(agent, `cat > /dev/null\n${script}\n`);
    return `sh ${agent}`;
  }

  async serve(...flags) {
    this.server = spawn(BINARY, ["ui", ...flags], { env: this.environment, cwd: this.project, stdio: ["ignore", "pipe", "inherit"] });
    const lines = createInterface({ input: this.server.stdout })[Symbol.asyncIterator]();
    const { value } = await lines.next();
    this.origin = new URL(value).origin;
    return value;
  }

  // A page that has followed the one-time link. It records what a page of ours must never do.
  async browse({ link, ...options }) {
    this.browser ??= await chromium.launch({ executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium", args: FLAGS });
    this.context = await this.browser.newContext({ viewport: { width: 1280, height: 900 }, timezoneId: "UTC", ...options });
    await this.context.grantPermissions(["clipboard-read", "clipboard-write"], { origin: this.origin });
    const page = await this.context.newPage();
    page.setDefaultTimeout(PATIENCE);
    this.troubles = [];
    page.on("console", (message) => message.type() === "error" && this.troubles.push(`console: ${message.text()}`));
    page.on("response", (response) => response.status() >= 400 && this.troubles.push(`${response.status()}: ${response.url()}`));
    page.on("pageerror", (error) => this.troubles.push(`error: ${error}`));
    page.on("request", (request) => {
      if (!request.url().startsWith(this.origin) && !request.url().startsWith("data:")) this.troubles.push(`outside: ${request.url()}`);
    });
    page.on("dialog", (dialog) => {
      this.troubles.push(`dialog: ${dialog.message()}`);
      dialog.dismiss();
    });
    await page.goto(link);
    await page.waitForURL(`${this.origin}/`);
    return page;
  }

  // The page of the first visit is kept for people to look at.
  async shot(page, name) {
    if (!SHOTS) return;
    await mkdir(SHOTS, { recursive: true });
    await page.screenshot({ path: join(SHOTS, `${name}.png`), fullPage: true });
  }

  async close() {
    await this.context?.close();
    await this.browser?.close();
    this.server?.kill("SIGTERM");
    this.client.stdin.end();
    await rm(this.root, { recursive: true, force: true, maxRetries: 5, retryDelay: 200 });
  }
}
