/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "errand/modes.h"

/* xterm's private modes (ctlseqs) that outlive the program which set them, in the order in which they are undone. */
static const struct {
        uint16_t number;
        bool normal; /* on when nobody has touched it */
} modes[] = {
        {1000, false}, {1002, false}, {1003, false}, {1004, false}, {1005, false}, {1006, false}, {1015, false}, /* mouse, focus */
        {2004, false},                                                                                          /* bracketed paste */
        {1, false},                                                                                             /* cursor keys */
        {7, true},                                                                                              /* wrap */
        {25, true},                                                                                             /* cursor */
        {47, false}, {1047, false}, {1049, false},                                                              /* alternate screen */
};

static void note(Modes *m, uint32_t number, bool on) {
        for (size_t i = 0; i < ELEMENTSOF(modes); i++)
                if (modes[i].number == number) {
                        uint32_t bit = UINT32_C(1) << i;
                        m->on = on != modes[i].normal ? m->on | bit : m->on & ~bit;
                }
}

static void end_number(Modes *m) {
        if (m->n_numbers < ELEMENTSOF(m->numbers))
                m->numbers[m->n_numbers++] = m->number;
        m->number = 0;
}

static void watch_private(Modes *m, char c) {
        if (c >= '0' && c <= '9') {
                m->number = MIN(m->number * 10 + (uint32_t) (c - '0'), UINT32_C(100000));
                return;
        }
        end_number(m);
        if (c == ';')
                return;
        if (c == 'h' || c == 'l')
                for (size_t i = 0; i < m->n_numbers; i++)
                        note(m, m->numbers[i], c == 'h');
        m->state = (unsigned char) c >= 0x40 ? MODES_TEXT : MODES_PASSED;
}

static void watch_escape(Modes *m, char c) {
        m->state = MODES_TEXT;
        switch (c) {
        case '[':
                m->state = MODES_CSI;
                m->number = 0;
                m->n_numbers = 0;
                return;
        case '=':
                m->keypad = true;
                return;
        case '>':
                m->keypad = false;
                return;
        case 'c': /* a full reset */
                *m = (Modes){};
                return;
        default:
                return;
        }
}

static void watch_csi(Modes *m, char c) {
        if (c == '?') {
                m->state = MODES_PRIVATE;
                return;
        }
        /* Its parameters are 0x30 to 0x3f, its end 0x40 to 0x7e. */
        m->state = MODES_PASSED;
        if ((unsigned char) c < 0x40)
                return;
        m->state = MODES_TEXT;
        if (c == 'm')
                m->coloured = false;
}

void modes_watch(Modes *m, const char *data, size_t size) {
        for (size_t i = 0; i < size; i++) {
                char c = data[i];

                if (c == '\x1b') {
                        m->state = MODES_ESCAPE;
                        continue;
                }
                switch (m->state) {
                case MODES_TEXT:
                        break;
                case MODES_ESCAPE:
                        watch_escape(m, c);
                        break;
                case MODES_CSI:
                        watch_csi(m, c);
                        break;
                case MODES_PRIVATE:
                        watch_private(m, c);
                        break;
                default:
                        if ((unsigned char) c >= 0x40) {
                                m->state = MODES_TEXT;
                                m->coloured = m->coloured || c == 'm';
                        }
                }
        }
}

const char *modes_undo(const Modes *m, char buffer[static MODES_UNDO_MAX]) {
        size_t n = 0;

        buffer[0] = 0;
        for (size_t i = 0; i < ELEMENTSOF(modes); i++)
                if (m->on & (UINT32_C(1) << i))
                        n += (size_t) snprintf(buffer + n, MODES_UNDO_MAX - n, "\x1b[?%u%c", modes[i].number, modes[i].normal ? 'h' : 'l');
        if (m->keypad)
                n += (size_t) snprintf(buffer + n, MODES_UNDO_MAX - n, "\x1b>");
        if (m->coloured)
                (void) snprintf(buffer + n, MODES_UNDO_MAX - n, "\x1b[0m");
        return buffer;
}
