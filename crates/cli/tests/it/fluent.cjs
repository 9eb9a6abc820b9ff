// Sends events with the client of the Fluent project, and ends once all were acknowledged.
// node fluent.cjs PORT MODE COUNT
const { FluentClient } = require("@fluent-org/logger");
const [port, eventMode, count] = process.argv.slice(2);
const client = new FluentClient("test", {
  eventMode,
  ack: { ackTimeout: 60000 },
  socket: { host: "127.0.0.1", port: Number(port), timeout: 60000 },
});
async function main() {
  const events = [];
  for (let number = 0; number < Number(count); number++) {
    events.push(client.emit({ text: `event ${number} of ${eventMode}` }));
  }
  await Promise.all(events);
  await client.disconnect();
}
main().then(() => process.exit(0), (error) => { console.error(error); process.exit(1); });
