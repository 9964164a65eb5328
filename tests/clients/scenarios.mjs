// What `scenarios.py` has, which hands it over: a JSON text in the environment.
export const { SCENARIOS, TOOLS } = JSON.parse(process.env.SCENARIOS);
export const asked = (content) => ({ messages: [{ role: "user", content }] });
export const made = (text, calls, reason) => ({ text: text ?? "", calls, reason });

export async function report(whole, streamed, failed) {
  const found = {};
  for (const [name, request] of Object.entries(SCENARIOS)) {
    found[name] = { whole: await whole(request), streamed: await streamed(request) };
  }
  found.busy = { whole: await whole(asked("busy")).catch(failed), streamed: await streamed(asked("busy")).catch(failed) };
  found.breaks = { streamed: await streamed(asked("breaks")).catch(failed) };
  console.log(JSON.stringify(found));
}
