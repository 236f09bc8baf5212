// SPDX-License-Identifier: LGPL-2.1-or-later
// Node's own fetch, told nothing of a proxy but by the session's variables.
const { inspect } = require('node:util');
fetch(process.argv[2]).then(
    async answer => console.log(answer.status, await answer.text()),
    error => { console.error(inspect(error, { depth: 9 })); process.exit(1); });
