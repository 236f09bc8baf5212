/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <langinfo.h>
#include <limits.h>
#include <locale.h>
#include <wchar.h>

#include "basic/text.h"
#include "basic/utf8.h"
#include "errand/table.h"

#define GAP 2U

typedef struct Cell {
        char *text;
        unsigned width;
        TableColour colour;
} Cell;

struct Table {
        TableColumn columns[TABLE_COLUMNS_MAX];
        size_t n_columns;
        Cell *cells;
        size_t n_cells, room;
        int error;
};

static const char *ellipsis = "...";

void table_setup(void) {
        (void) setlocale(LC_CTYPE, "");
        if (streq(nl_langinfo(CODESET), "UTF-8"))
                ellipsis = "…";
        (void) setlocale(LC_CTYPE, "C.UTF-8");
}

static uint32_t code_point(const unsigned char *s, size_t n) {
        static const unsigned char lead[] = {0, 0x7f, 0x1f, 0x0f, 0x07};
        uint32_t c = s[0] & lead[n];

        for (size_t i = 1; i < n; i++)
                c = c << 6 | (s[i] & 0x3fU);
        return c;
}

/* Marks of direction, joiners, spaces without width, tags: they show nothing and change what is around them. */
static bool is_invisible(uint32_t c) {
        return c == 0xad || c == 0x61c || c == 0x115f || c == 0x1160 || c == 0x180e || (c >= 0x200b && c <= 0x200f) ||
               (c >= 0x2028 && c <= 0x202e) || (c >= 0x2060 && c <= 0x206f) || c == 0x3164 || c == 0xfeff || c == 0xffa0 ||
               (c >= 0xfff0 && c <= 0xfffb) || (c >= 0xe0000 && c <= 0xe0fff);
}

char *text_for_terminal(const char *s) {
        _cleanup_free_ char *plain = string_escape_control(s);
        size_t size = 0, room;
        char *text;

        if (!plain)
                return NULL;
        room = 4 * strlen(plain) + 1; /* two bytes at least become \u{XX}, which the longest keeps below four times its size */
        text = malloc(room);
        if (!text)
                return NULL;
        for (const unsigned char *p = (const unsigned char *) plain; *p;) {
                size_t n = MAX(utf8_sequence(p, strlen((const char *) p)), (size_t) 1);
                uint32_t c = code_point(p, n);

                if (is_invisible(c))
                        size += (size_t) snprintf(text + size, room - size, "\\u{%x}", c);
                else {
                        memcpy(text + size, p, n);
                        size += n;
                }
                p += n;
        }
        text[size] = 0;
        return text;
}

/* The columns of the character at p, and how many bytes it has. */
static unsigned character_width(const char *p, size_t *ret_size) {
        size_t n = MAX(utf8_sequence((const unsigned char *) p, strlen(p)), (size_t) 1);
        int width = wcwidth((wchar_t) code_point((const unsigned char *) p, n));

        *ret_size = n;
        return width < 0 ? 1 : (unsigned) width;
}

unsigned text_width(const char *s) {
        unsigned width = 0;
        size_t n;

        for (; *s; s += n)
                width += character_width(s, &n);
        return width;
}

/* Bytes of s that fit, at most `room` columns of them. */
static size_t fitting(const char *s, unsigned room, unsigned *ret_width) {
        const char *p = s;
        unsigned width = 0;
        size_t n;

        while (*p) {
                unsigned w = character_width(p, &n);
                if (width + w > room)
                        break;
                width += w;
                p += n;
        }
        *ret_width = width;
        return (size_t) (p - s);
}

int table_new(const TableColumn *columns, size_t n, Table **ret) {
        Table *t;

        if (n == 0 || n > TABLE_COLUMNS_MAX)
                return -EINVAL;
        t = calloc(1, sizeof(Table));
        if (!t)
                return -ENOMEM;
        memcpy(t->columns, columns, n * sizeof(TableColumn));
        t->n_columns = n;
        *ret = t;
        return 0;
}

Table *table_free(Table *t) {
        if (!t)
                return NULL;
        for (size_t i = 0; i < t->n_cells; i++)
                free(t->cells[i].text);
        free(t->cells);
        return mfree(t);
}

void table_add_coloured(Table *t, const char *cell, TableColour colour) {
        char *text;

        if (t->error < 0)
                return;
        if (t->n_cells == t->room) {
                size_t room = MAX(t->room * 2, (size_t) 64);
                Cell *cells = realloc(t->cells, room * sizeof(Cell));

                if (!cells) {
                        t->error = -ENOMEM;
                        return;
                }
                t->cells = cells;
                t->room = room;
        }
        text = text_for_terminal(cell && *cell ? cell : "-");
        if (!text) {
                t->error = -ENOMEM;
                return;
        }
        t->cells[t->n_cells++] = (Cell){.text = text, .width = text_width(text), .colour = colour};
}

void table_add(Table *t, const char *cell) {
        table_add_coloured(t, cell, COLOUR_NONE);
}

void table_addf(Table *t, const char *format, ...) {
        _cleanup_free_ char *text = string_format_own(format);

        if (text)
                table_add(t, text);
        else
                t->error = -ENOMEM;
}

size_t table_rows(const Table *t) {
        return t->n_cells / t->n_columns;
}

#define LEFT_OUT UINT_MAX
#define CUT_MIN 4U /* a letter, and that there are more */

/* How far a column may be cut, where no more than `cap` need be left of any; UINT_MAX: not at all. */
static unsigned least_of(const TableColumn *column, unsigned cap) {
        return column->least > 0 ? MIN(column->least, cap) : UINT_MAX;
}

/* Of all columns that are shown, each cut so far; cap 0: none is. */
static unsigned sum_widths(const Table *t, const unsigned widths[static TABLE_COLUMNS_MAX], unsigned cap) {
        unsigned sum = 0;

        for (size_t c = 0; c < t->n_columns; c++)
                if (widths[c] != LEFT_OUT)
                        sum += (sum > 0 ? GAP : 0) + (cap > 0 ? MIN(widths[c], least_of(t->columns + c, cap)) : widths[c]);
        return sum;
}

static void leave_out(const Table *t, unsigned width, unsigned widths[static TABLE_COLUMNS_MAX]) {
        for (unsigned turn = 1; turn <= TABLE_COLUMNS_MAX && sum_widths(t, widths, UINT_MAX) > width; turn++)
                for (size_t c = 0; c < t->n_columns; c++)
                        if (t->columns[c].optional == turn)
                                widths[c] = LEFT_OUT;
}

/* As wide as the widest cell; what is too much for the terminal is taken from the widest of those that may be cut. */
static void settle_widths(const Table *t, unsigned width, unsigned widths[static TABLE_COLUMNS_MAX]) {
        for (size_t c = 0; c < t->n_columns; c++) {
                widths[c] = text_width(t->columns[c].title);
                for (size_t i = c; i < t->n_cells; i += t->n_columns)
                        widths[c] = MAX(widths[c], t->cells[i].width);
        }
        if (width == 0)
                return;
        leave_out(t, width, widths);
        /* Rather less than its least of a column than a row that wraps. */
        unsigned cap = sum_widths(t, widths, UINT_MAX) > width && sum_widths(t, widths, CUT_MIN) <= width ? CUT_MIN : UINT_MAX;
        for (unsigned sum = sum_widths(t, widths, 0); sum > width; sum--) {
                size_t widest = SIZE_MAX;

                for (size_t c = 0; c < t->n_columns; c++)
                        if (widths[c] != LEFT_OUT && widths[c] > least_of(t->columns + c, cap) &&
                            (widest == SIZE_MAX || widths[c] > widths[widest]))
                                widest = c;
                if (widest == SIZE_MAX)
                        return;
                widths[widest]--;
        }
}

const char *colour_begin(TableColour c, bool colours) {
        static const char *const codes[_COLOUR_MAX] = {"", "\x1b[32m", "\x1b[31m", "\x1b[2m"};
        return colours ? codes[c] : "";
}

const char *colour_end(TableColour c, bool colours) {
        return colours && c != COLOUR_NONE ? "\x1b[0m" : "";
}

static void print_cell(const Cell *cell, const TableColumn *column, unsigned width, bool last, bool colours, FILE *f) {
        unsigned shown = cell->width, dots = text_width(ellipsis);
        const char *tail = "";
        size_t n = strlen(cell->text);

        if (cell->width > width) {
                n = fitting(cell->text, width > dots ? width - dots : 0, &shown);
                tail = ellipsis;
                shown += dots;
        }
        unsigned pad = width > shown ? width - shown : 0;
        fprintf(f, "%*s%s%.*s%s%s", column->right ? (int) pad : 0, "", colour_begin(cell->colour, colours), (int) n, cell->text, tail,
                colour_end(cell->colour, colours));
        if (!last)
                fprintf(f, "%*s", (int) (GAP + (column->right ? 0 : pad)), "");
}

static int print(const Table *t, FILE *f, unsigned width, bool colours, bool titles) {
        unsigned widths[TABLE_COLUMNS_MAX];
        size_t last = 0;

        if (t->error < 0)
                return t->error;
        settle_widths(t, width, widths);
        for (size_t c = 0; c < t->n_columns; c++)
                if (widths[c] != LEFT_OUT)
                        last = c;
        for (size_t c = 0; titles && c < t->n_columns; c++) {
                Cell cell = {.text = (char *) t->columns[c].title, .width = text_width(t->columns[c].title), .colour = COLOUR_DIM};

                if (widths[c] != LEFT_OUT)
                        print_cell(&cell, t->columns + c, widths[c], c == last, colours, f);
        }
        if (titles)
                fputc('\n', f);
        for (size_t i = 0; i < t->n_cells; i++) {
                size_t c = i % t->n_columns;

                if (widths[c] != LEFT_OUT)
                        print_cell(t->cells + i, t->columns + c, widths[c], c == last, colours, f);
                if (c + 1 == t->n_columns)
                        fputc('\n', f);
        }
        return ferror(f) ? -EIO : 0;
}

int table_print(const Table *t, FILE *f, unsigned width, bool colours) {
        return print(t, f, width, colours, true);
}

int table_print_rows(const Table *t, FILE *f, unsigned width, bool colours) {
        return print(t, f, width, colours, false);
}
