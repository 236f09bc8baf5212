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

static void act(Modes *m, char final) {
        uint32_t first = m->numbers[0], second = m->n_numbers > 1 ? m->numbers[1] : 0, last = m->numbers[m->n_numbers - 1];

        if (m->between == ' ' && final == 'q')
                m->cursor = first != 0;
        if (m->between)
                return;
        if (m->prefix == '?' && (final == 'h' || final == 'l'))
                for (size_t i = 0; i < m->n_numbers; i++)
                        note(m, m->numbers[i], final == 'h');
        else if (m->prefix == '>' && final == 'm' && first == 4)
                m->modified_keys = second != 0;
        else if (m->prefix == '>' && final == 'u')
                m->keyboards = MIN(m->keyboards + 1, 99U);
        else if (m->prefix == '<' && final == 'u')
                m->keyboards -= MIN(m->keyboards, MAX(first, UINT32_C(1)));
        else if (!m->prefix && final == 'm')
                m->coloured = last != 0;
        else if (!m->prefix && final == 'r')
                m->region = m->n_numbers > 1 || first != 0;
}

static void watch_escape(Modes *m, char c) {
        m->state = MODES_TEXT;
        switch (c) {
        case '[':
                m->state = MODES_CSI;
                m->prefix = m->between = 0;
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
        if (c >= '0' && c <= '9')
                m->number = MIN(m->number * 10 + (uint32_t) (c - '0'), UINT32_C(100000));
        else if (c == ';' || c == ':')
                end_number(m);
        else if (c >= '<' && c <= '?')
                m->prefix = c;
        else if (c >= ' ' && c <= '/')
                m->between = c;
        else if ((unsigned char) c >= 0x40) {
                end_number(m);
                act(m, c);
                m->state = MODES_TEXT;
        }
}

void modes_watch(Modes *m, const char *data, size_t size) {
        for (size_t i = 0; i < size; i++)
                if (data[i] == '\x1b')
                        m->state = MODES_ESCAPE;
                else if (m->state == MODES_ESCAPE)
                        watch_escape(m, data[i]);
                else if (m->state == MODES_CSI)
                        watch_csi(m, data[i]);
}

static size_t append(char *buffer, size_t n, bool wanted, const char *sequence) {
        return wanted ? n + (size_t) snprintf(buffer + n, MODES_UNDO_MAX - n, "%s", sequence) : n;
}

const char *modes_undo(const Modes *m, char buffer[static MODES_UNDO_MAX]) {
        size_t n = 0;

        buffer[0] = 0;
        /* It moves the cursor, so the cursor is kept; before the alternate screen is left, which has a region of its own in some terminals. */
        n = append(buffer, n, m->region, "\x1b" "7\x1b[r\x1b" "8");
        for (size_t i = 0; i < ELEMENTSOF(modes); i++)
                if (m->on & (UINT32_C(1) << i))
                        n += (size_t) snprintf(buffer + n, MODES_UNDO_MAX - n, "\x1b[?%u%c", modes[i].number, modes[i].normal ? 'h' : 'l');
        n = append(buffer, n, m->modified_keys, "\x1b[>4m");
        if (m->keyboards > 0)
                n += (size_t) snprintf(buffer + n, MODES_UNDO_MAX - n, "\x1b[<%uu", m->keyboards);
        n = append(buffer, n, m->cursor, "\x1b[0 q");
        n = append(buffer, n, m->keypad, "\x1b>");
        (void) append(buffer, n, m->coloured, "\x1b[0m");
        return buffer;
}
