// SillyTavern's own page in Chromium: an extension's function tool is called by a model that only writes text.
import { writeFileSync } from "node:fs";
import puppeteer from "puppeteer-core";

const [address, page, chromium, screenshot] = process.argv.slice(2);
const browser = await puppeteer.launch({ executablePath: chromium, headless: true, args: ["--no-sandbox", "--disable-gpu"] });
const tab = await browser.newPage();
await tab.setViewport({ width: 1200, height: 900 });
await tab.goto(page, { waitUntil: "domcontentloaded" });
await tab.waitForFunction(() => window.SillyTavern && document.querySelector("#preloader") === null, { timeout: 120_000 });
// Who is here for the first time is asked for a name, a moment after the page is there.
await tab.waitForSelector("dialog[open] .popup-button-ok", { timeout: 60_000 });
await tab.evaluate(() => document.querySelector("dialog[open] .popup-button-ok").click());
await tab.waitForFunction(() => !document.querySelector("dialog[open]"), { timeout: 60_000 });
await tab.evaluate(async (url) => {
  const context = SillyTavern.getContext();
  await context.executeSlashCommandsWithOptions("/api custom");
  Object.assign(context.chatCompletionSettings, {
    custom_url: url, custom_model: "text-only", function_calling: true, stream_openai: true, chat_completion_source: "custom",
  });
  for (const [selector, value] of [["#custom_api_url_text", url], ["#custom_model_id", "text-only"]]) {
    const field = document.querySelector(selector);
    field.value = value;
    field.dispatchEvent(new Event("input", { bubbles: true }));
  }
  const box = document.querySelector("#openai_function_calling");
  if (!box.checked) box.click();
  document.querySelector("#api_button_openai").click();
  await new Promise((resolve) => setTimeout(resolve, 3000));
  window.calls = [];
  context.registerFunctionTool({
    name: "weather", displayName: "Weather", description: "Weather of a city.",
    parameters: { $schema: "http://json-schema.org/draft-04/schema#", type: "object", properties: { city: { type: "string" } }, required: ["city"] },
    action: async (input) => (window.calls.push(input), "7 degrees [CALL: weather()]"),
    formatMessage: () => "Looking at the sky",
  });
  await context.executeSlashCommandsWithOptions("/go Seraphina");
}, `${address}/v1`);
await tab.evaluate(() => {
  const field = document.querySelector("#send_textarea");
  field.value = "one call";
  field.dispatchEvent(new Event("input", { bubbles: true }));
  document.querySelector("#send_but").click();
});
await tab.waitForFunction(
  () => window.calls.length && SillyTavern.getContext().chat.at(-1)?.mes.includes("7 degrees"), { timeout: 60_000 },
).catch(() => undefined);
await new Promise((resolve) => setTimeout(resolve, 1500));
const found = await tab.evaluate(() => ({
  calls: window.calls,
  shown: document.querySelector("#chat").innerText,
  covered: document.querySelectorAll("dialog[open]").length,
  chat: SillyTavern.getContext().chat.map((message) => ({ name: message.name, text: message.mes, tools: message.extra?.tool_invocations })),
}));
writeFileSync(screenshot, await tab.screenshot());
await browser.close();
console.log(JSON.stringify(found));
