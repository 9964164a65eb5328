// What OpenRPC's own library says of a document: whether it is valid, and how many methods it has.
import { readFileSync } from "node:fs";
import utils from "@open-rpc/schema-utils-js";

const document = JSON.parse(readFileSync(process.argv[2], "utf8"));
const valid = utils.validateOpenRPCDocument(document) === true;
const methods = valid ? (await utils.parseOpenRPCDocument(document)).methods.length : 0;
console.log(JSON.stringify({ valid, methods }));
