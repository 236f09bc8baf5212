// SPDX-License-Identifier: LGPL-2.1-or-later
// The same with the other provider's library.
const { inspect } = require('node:util');
const OpenAI = require('openai').default;

async function main() {
    const client = new OpenAI(process.argv[2] ? { baseURL: process.argv[2], apiKey: 'none' } : {});
    const stream = await client.chat.completions.create({ model: 'm', stream: true, messages: [{ role: 'user', content: 'count' }] });
    for await (const chunk of stream)
        console.log(chunk.choices[0].delta.content ?? chunk.choices[0].finish_reason);
}

main().catch(error => {
    console.error(inspect(error, { depth: 9 }));
    process.exit(1);
});
