// The openai package of npm.
import OpenAI from "openai";
import { SCENARIOS, TOOLS, asked, made, report } from "./scenarios.mjs";

const client = new OpenAI({ baseURL: `${process.argv[2]}/v1`, apiKey: "sk-test", maxRetries: 0, timeout: 60_000 });

function read(choice) {
  const calls = (choice.message.tool_calls ?? []).map((call) => [call.function.name, JSON.parse(call.function.arguments)]);
  return made(choice.message.content, calls, choice.finish_reason);
}

const whole = async (request) =>
  read((await client.chat.completions.create({ model: "m", tools: TOOLS, ...request })).choices[0]);

async function streamed(request) {
  const stream = client.chat.completions.stream({ model: "m", tools: TOOLS, ...request });
  return read((await stream.finalChatCompletion()).choices[0]);
}

function failed(error) {
  if (error.status) return { status: error.status, retry: error.headers.get("retry-after") };
  return { error: error.message };
}

await report(whole, streamed, failed);

const ran = [];
const tools = TOOLS.map((tool) => ({
  type: "function",
  function: { ...tool.function, parse: JSON.parse, function: (input) => (ran.push([tool.function.name, input]), "7 degrees") },
}));
const runner = client.chat.completions.runTools({ model: "m", messages: asked("one call").messages, tools, stream: true });
console.log(JSON.stringify({ text: await runner.finalContent(), calls: ran }));

const endless = await client.chat.completions.create({ model: "m", tools: TOOLS, stream: true, ...asked("endless") });
for await (const chunk of endless) if (chunk.choices[0].delta.content) break;
