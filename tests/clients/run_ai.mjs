// The ai package of npm with @ai-sdk/openai-compatible: it runs the whole loop by itself.
import { createOpenAICompatible } from "@ai-sdk/openai-compatible";
import { generateText, jsonSchema, stepCountIs, streamText, tool } from "ai";
import { TOOLS } from "./scenarios.mjs";

const provider = createOpenAICompatible({ name: "proxy", baseURL: `${process.argv[2]}/v1`, apiKey: "sk-test", includeUsage: true });
let calls = [];
const tools = Object.fromEntries(
  TOOLS.map(({ function: { name, description, parameters } }) => [
    name,
    tool({
      description,
      inputSchema: jsonSchema(parameters),
      execute: async (input) => (calls.push([name, input]), "7 degrees [CALL: now()]"),
    }),
  ]),
);
const asked = (prompt, more) => ({
  model: provider("m"), tools, prompt, stopWhen: stepCountIs(3), maxRetries: 0, ...more,
});
const failed = (error) => (error.statusCode ? { status: error.statusCode, retry: error.responseHeaders["retry-after"] } : { error: error.message ?? String(error) });

async function whole(prompt, more) {
  calls = [];
  const { text, steps } = await generateText(asked(prompt, more));
  return { text, calls, reasons: steps.map((step) => step.finishReason) };
}

async function streamed(prompt, more) {
  calls = [];
  let failure;
  const result = streamText({ ...asked(prompt, more), onError: ({ error }) => { failure = error; } });
  await result.consumeStream();
  if (failure !== undefined) throw failure;
  const steps = await result.steps;
  return { text: await result.text, calls, reasons: steps.map((step) => step.finishReason) };
}

const found = {};
for (const [name, prompt, more] of [
  ["plain", "hello"], ["one", "one call"], ["parallel", "two calls"], ["empty", "no arguments"],
  ["named", "choose", { toolChoice: { type: "tool", toolName: "news" }, stopWhen: stepCountIs(1) }],
  ["required", "choose", { toolChoice: "required", stopWhen: stepCountIs(1) }],
  ["none", "choose", { toolChoice: "none" }],
]) {
  found[name] = { whole: await whole(prompt, more), streamed: await streamed(prompt, more) };
}
found.busy = { whole: await whole("busy").catch(failed), streamed: await streamed("busy").catch(failed) };
found.breaks = { streamed: await streamed("breaks").catch(failed) };
console.log(JSON.stringify(found));

const abort = new AbortController();
try {
  for await (const part of streamText({ ...asked("endless"), abortSignal: abort.signal }).textStream) if (part) abort.abort();
} catch (error) {
  if (error.name !== "AbortError") throw error;
}
