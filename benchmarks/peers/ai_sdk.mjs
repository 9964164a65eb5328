// The protocol of worker.py for `@ai-sdk-tool/parser`, under node.
//
// Whole: `wrapGenerate`, its middleware around a model that has written the text: where the protocol finds no call, the
// middleware looks for the JSON of one. Streamed: `createStreamParser`, a TransformStream that is written text-deltas
// and read at the same time, as `streamText` does; what the middleware does behind it fits values to the schema. All
// chunks of a turn are awaited one by one, which is how they come to it.
import { createInterface } from "node:readline";
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { performance } from "node:perf_hooks";
import { pathToFileURL } from "node:url";
import { join } from "node:path";

const folder = process.argv[2];
const require = createRequire(join(folder, "package.json"));
const main = require.resolve("@ai-sdk-tool/parser").replace(/index\.cjs$/, "index.js");
const { hermesProtocol, originalToolsSchema, qwen3CoderProtocol, wrapGenerate } = await import(pathToFileURL(main).href);
const packageFile = join(folder, "node_modules", "@ai-sdk-tool", "parser", "package.json");
const versions = {
  node: process.versions.node,
  "@ai-sdk-tool/parser": JSON.parse(readFileSync(packageFile, "utf8")).version,
};
const protocols = { hermes: hermesProtocol, qwen3coder: qwen3CoderProtocol };
const tasks = new Map();
const WARMING_TEXTS = 20; // as in worker.py
const CLOCK_CALLS = 2000;
const LONG_SECONDS = 0.03; // as in measure.py

const decoded = (text) => {
  try {
    return JSON.parse(text);
  } catch {
    return text;
  }
};

const cut = (text, lengths) => {
  const points = Array.from(text); // lengths are in code points
  const pieces = [];
  let start = 0;
  for (const length of lengths) {
    pieces.push(points.slice(start, start + length).join(""));
    start += length;
  }
  return pieces;
};

const sorted = (parts) => {
  const calls = [];
  let content = "";
  for (const part of parts) {
    if (part.type === "tool-call") calls.push([part.toolName, decoded(part.input)]);
    else if (part.type === "text") content += part.text;
    else if (part.type === "text-delta") content += part.delta;
  }
  return { calls, content };
};

const told = (error) => `${error?.name}: ${error?.message}`.slice(0, 500);

// The middleware reads a text a second time for a summary that only debugging shows: it is spared that.
const readWhole = async (protocol, { params }, text) => {
  const answered = { content: [{ type: "text", text }], finishReason: { unified: "stop" }, usage: {} };
  const quiet = { ...protocol, extractToolCallSegments: undefined };
  return (await wrapGenerate({ protocol: quiet, params, doGenerate: async () => answered })).content;
};

const open = (protocol, tools) => {
  const transform = protocol.createStreamParser({ tools });
  const writer = transform.writable.getWriter();
  const reader = transform.readable.getReader();
  const parts = [];
  const done = (async () => {
    for (;;) {
      const next = await reader.read();
      if (next.done) return;
      parts.push(next.value);
    }
  })();
  return {
    parts,
    feed: (delta) => writer.write({ type: "text-delta", id: "1", delta }),
    finish: async () => {
      await writer.write({ type: "finish", finishReason: "stop", usage: {} });
      await writer.close();
      await done;
    },
  };
};

const processorSeconds = () => {
  const { user, system } = process.cpuUsage(); // of all threads of node, its compiler's included
  return (user + system) / 1e6;
};

// What the clock counts of itself, between two calls, as in worker.py.
const clockSeconds = () => {
  let spent = 0;
  for (let place = 0; place < CLOCK_CALLS; place += 1) {
    const start = processorSeconds();
    spent += processorSeconds() - start;
  }
  return spent / CLOCK_CALLS;
};

const timed = async (protocol, task, pieces, times = 1) => {
  let parts;
  if (!pieces) {
    const start = processorSeconds();
    for (let place = 0; place < times; place += 1) {
      parts = await readWhole(protocol, task, task.text);
    }
    return [processorSeconds() - start, parts];
  }
  const streams = Array.from({ length: times }, () => open(protocol, task.tools));
  const start = processorSeconds();
  for (const stream of streams) {
    for (const piece of pieces) await stream.feed(piece);
    await stream.finish();
  }
  return [processorSeconds() - start, streams[0].parts];
};

const filled = async (read, least) => {
  let [seconds] = await read(1);
  if (seconds >= Math.max(least, LONG_SECONDS)) return { seconds, repeats: 1 };
  [seconds] = await read(1); // the first filled caches
  if (seconds >= least) return { seconds, repeats: 1 };
  const repeats = Math.ceil(least / Math.max(seconds, 1e-6));
  return { seconds: (await read(repeats))[0] / repeats, repeats };
};

const operations = {
  hello: async () => ({ readers: Object.keys(protocols), versions }),
  load: async ({ key, text, tools, options }) => {
    const known = (tools ?? []).map(({ function: { name, description, parameters } }) => ({
      type: "function",
      name,
      description,
      inputSchema: parameters ?? { type: "object", properties: {} },
    }));
    const params = { prompt: [], providerOptions: { toolCallMiddleware: { originalTools: originalToolsSchema.encode(known) } } };
    tasks.set(key, { text, tools: known, params, options: options ?? {}, cuts: new Map() });
    return {};
  },
  forget: async () => {
    tasks.clear();
    return {};
  },
  read: async (request) => {
    const [protocol, task, pieces] = prepared(request);
    const [seconds, parts] = await timed(protocol, task, pieces);
    return { seconds, ...sorted(parts) };
  },
  turn: async (request) => {
    const [protocol, task, pieces] = prepared(request);
    return filled((times) => timed(protocol, task, pieces, times), request.least ?? 0.002);
  },
  next: async (request) => {
    const [protocol, task] = prepared({ ...request, pieces: undefined });
    const points = Array.from(task.text);
    const stream = open(protocol, task.tools);
    const start = processorSeconds();
    let position = 0;
    const feed = async (end) => {
      const piece = points.slice(position, end).join("");
      position = end;
      const before = performance.now();
      await stream.feed(piece);
      return (performance.now() - before) / 1000;
    };
    for (let place = 0; place < 70 && position < request.fed; place += 1) {
      const length = place < 50 ? 4 : Math.max(1, Math.floor((request.fed - 200) / 20));
      await feed(Math.min(position + length, request.fed));
    }
    for (const length of request.pieces.slice(0, 4)) await feed(position + length);
    const spent = processorSeconds() - start;
    const seconds = [];
    let total = 0;
    for (const length of request.pieces.slice(4)) {
      seconds.push(await feed(position + length));
      total += seconds.at(-1);
      if (total > request.budget && seconds.length >= 3) break;
    }
    await feed(points.length);
    await stream.finish();
    return { seconds, spent, calls: sorted(stream.parts).calls };
  },
  many: async (request) => {
    const [protocol, task] = prepared({ ...request, pieces: undefined });
    const order = task.options.streams.flatMap((pieces, place) => pieces.map((piece, step) => ({ place, piece, step })));
    if (request.together) order.sort((one, other) => one.step - other.step || one.place - other.place);
    const streams = task.options.streams.map(() => open(protocol, task.tools));
    const start = processorSeconds();
    for (const { place, piece } of order) await streams[place].feed(piece);
    for (const stream of streams) await stream.finish();
    const seconds = processorSeconds() - start;
    return { seconds, calls: request.judged ? streams.flatMap(({ parts }) => sorted(parts).calls) : undefined };
  },
  batch: async (request) => {
    const [protocol, task] = prepared({ ...request, pieces: undefined });
    const read = async (texts) => {
      let seconds = 0;
      const calls = [];
      const failures = [];
      for (const text of texts) {
        const start = processorSeconds();
        try {
          const parts = await readWhole(protocol, task, text);
          seconds += processorSeconds() - start;
          calls.push(...sorted(parts).calls);
        } catch (error) {
          seconds += processorSeconds() - start;
          failures.push(error);
        }
      }
      return { seconds, calls, failures };
    };
    await read(task.options.texts.slice(0, WARMING_TEXTS));
    const { failures, ...made } = await read(task.options.texts);
    made.seconds = Math.max(0, made.seconds - task.options.texts.length * clockSeconds());
    if (failures.length === task.options.texts.length) throw failures[0];
    return { ...made, failed: failures.map(told) };
  },
};

const prepared = (request) => {
  const task = tasks.get(request.key);
  if (!request.pieces) return [protocols[request.reader](), task, undefined];
  const key = request.pieces.join();
  if (!task.cuts.has(key)) task.cuts.set(key, cut(task.text, request.pieces));
  return [protocols[request.reader](), task, task.cuts.get(key)];
};

for await (const line of createInterface({ input: process.stdin, crlfDelay: Infinity })) {
  const request = JSON.parse(line);
  let answer;
  try {
    answer = { ok: true, ...(await operations[request.op](request)) };
  } catch (error) {
    answer = { ok: false, error: told(error) };
  }
  process.stdout.write(`${JSON.stringify(answer)}\n`);
}
