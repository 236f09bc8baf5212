/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Which modes a session's output has switched on in the terminal that shows it: the alternate screen, mouse reports, a hidden cursor. A session
 * that is killed, or left by detaching, does not switch them off, so errand does. Only what was seen to be on is switched off: some of these
 * sequences move the cursor. */

#include "basic/macro.h"

typedef struct Modes {
        enum {
                MODES_TEXT,
                MODES_ESCAPE,
                MODES_CSI, /* a control sequence: ESC [ prefix numbers between final */
        } state;
        char prefix, between; /* one of < = > ?, and one of the signs below 0x30; 0: none */
        uint32_t number;      /* the one being read */
        uint32_t numbers[16];
        size_t n_numbers;
        uint32_t on;          /* bits by the table's order */
        unsigned keyboards;   /* pushed on the stack of keyboard modes */
        bool keypad, coloured, region, modified_keys, cursor;
} Modes;

void modes_watch(Modes *m, const char *data, size_t size);

/* The sequences that switch off what is on, "" when nothing is. */
#define MODES_UNDO_MAX 256U
const char *modes_undo(const Modes *m, char buffer[static MODES_UNDO_MAX]);
