// SPDX-License-Identifier: LGPL-2.1-or-later
// A streamed message: as the variables of the session say where, or from the host that is named. Each piece is a line when it comes.
const { inspect } = require('node:util');
const Anthropic = require('@anthropic-ai/sdk').default;

const client = new Anthropic(process.argv[2] ? { baseURL: process.argv[2], apiKey: 'none' } : {});
const stream = client.messages.stream({ model: 'm', max_tokens: 16, messages: [{ role: 'user', content: 'count' }] });
stream.on('text', text => console.log(text));
stream.finalMessage().then(
    message => console.log(`${message.stop_reason} ${message.usage.output_tokens}`),
    error => { console.error(inspect(error, { depth: 9 })); process.exit(1); });
