// A client beside the test: it starts hooks as Claude Code does, for each line of JSON on its stdin, until that closes.
// A process of its own, because what a client starts counts as its agent's.
import { spawn } from "node:child_process";
import { createInterface } from "node:readline";

const binary = process.argv[2];
for await (const line of createInterface({ input: process.stdin })) {
  // Node gives a child a socket as stdin, as Claude Code does.
  const hook = spawn(binary, ["hook", "claude"], { stdio: ["pipe", "pipe", "inherit"], detached: true });
  let said = "";
  hook.stdout.on("data", (part) => (said += part));
  hook.stdin.end(line);
  const code = await new Promise((done) => hook.on("close", done));
  process.stdout.write(`${JSON.stringify({ code, said })}\n`);
}
