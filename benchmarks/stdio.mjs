// Times a short parse through `callmark stdio`, one after the other: node stdio.mjs TIMES COMMAND ARGUMENT...
// Prints the median and the 99th percentile in microseconds, as JSON.
import { spawn } from "node:child_process";

const [times, command, ...words] = process.argv.slice(2);
const server = spawn(command, words, { stdio: ["pipe", "pipe", "inherit"] });
const text = 'I will look that up for you now. [CALL: get_weather({"city": "Oslo", "days": 3})] One moment, please.';
let rest = "";
let answered;
server.stdout.setEncoding("utf8").on("data", (data) => {
  rest += data;
  for (let end; (end = rest.indexOf("\n")) >= 0; rest = rest.slice(end + 1)) answered(JSON.parse(rest.slice(0, end)));
});

const call = (id, method, params) =>
  new Promise((resolve) => {
    answered = resolve;
    server.stdin.write(JSON.stringify({ jsonrpc: "2.0", id, method, params }) + "\n");
  });

await call(0, "initialize", {});
const took = [];
for (let id = 1; id <= Number(times) + 500; id++) {
  const start = process.hrtime.bigint();
  const { result } = await call(id, "parse", { text });
  const nanoseconds = Number(process.hrtime.bigint() - start);
  if (result.events.filter((event) => event.type === "call").length !== 1) throw new Error("expected one call");
  if (id > 500) took.push(nanoseconds / 1000);
}
took.sort((one, other) => one - other);
console.log(JSON.stringify({ median: took[took.length >> 1], p99: took[Math.floor(took.length * 0.99)] }));
server.stdin.end();
