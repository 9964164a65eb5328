// A client of `callmark stdio` in JavaScript: node client.mjs COMMAND ARGUMENT...
//
// Parses, reads a stream that is cut inside an emoji, and runs a session whose model and tool live here. Prints what it
// saw as one line of JSON.
import { spawn } from "node:child_process";
import { createInterface } from "node:readline";

const [command, ...words] = process.argv.slice(2);
const server = spawn(command, words, { stdio: ["pipe", "pipe", "inherit"] });
const waiting = new Map();
let last = 0;

const send = (message) => server.stdin.write(JSON.stringify({ jsonrpc: "2.0", ...message }) + "\n");
const call = (method, params) =>
  new Promise((resolve, reject) => {
    waiting.set(++last, { resolve, reject });
    send({ id: last, method, params });
  });

const answers = ["Let me see. [CALL: look(at=grass)] [CALL: look(at=nothing)]", "It is green."];
const seen = [];
const asked = {
  "model/generate": ({ messages }, id) => {
    seen.push(messages.at(-1).content);
    for (const text of answers.shift().split(/(?= )/)) {
      send({ method: "model/chunk", params: { generation: id, text } });
    }
    return {};
  },
  "tool/invoke": ({ name, arguments: { at } }) => {
    if (at === "nothing") throw Object.assign(new Error("there is nothing"), { code: "not-there" });
    return { [name]: at, colour: "green" };
  },
};

createInterface({ input: server.stdout }).on("line", (line) => {
  const { id, method, params, result, error } = JSON.parse(line);
  if (method === undefined) {
    const { resolve, reject } = waiting.get(id);
    waiting.delete(id);
    error ? reject(error) : resolve(result);
  } else if (id !== undefined) {
    try {
      send({ id, result: asked[method](params, id) });
    } catch (thrown) {
      send({ id, error: { code: 1, message: thrown.message, data: { code: thrown.code } } });
    }
  } else if (params.event.type === "result") {
    seen.push(params.event.data ?? params.event.error.code);
  }
});

const { versions } = await call("initialize", { positions: "utf-16" });
const text = "😀 [CALL: f({a: '😀'})]";
const { events } = await call("parse", { text });
const found = events.find((event) => event.type === "call");
const same = text.slice(found.span.start, found.span.end) === found.raw;

const { stream } = await call("stream/open", {});
const read = [];
for (const unit of text.split("")) read.push(...(await call("stream/feed", { stream, text: unit })).events);
read.push(...(await call("stream/close", { stream })).events);
const streamed = read.find((event) => event.type === "call");

const wrong = await call("parse", { text: 7 }).catch((error) => error.data.code);
const look = { name: "look", mode: "read", parameters: { properties: { at: { type: "string" } } } };
const { session } = await call("session/open", { tools: [look] });
const turn = await call("session/run", { session, text: "How is the grass?" });
console.log(JSON.stringify({ versions, same, agrees: JSON.stringify(streamed) === JSON.stringify(found), wrong, turn, seen }));
server.stdin.end();
