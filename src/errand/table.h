/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Aligned tables for people. Cells come from outside as often as not, so nothing in them can move the cursor, forge a line or turn the
 * direction of writing. */

#include "basic/macro.h"

#define TABLE_COLUMNS_MAX 12U

typedef enum TableColour {
        COLOUR_NONE,
        COLOUR_GOOD,
        COLOUR_BAD,
        COLOUR_DIM,
        _COLOUR_MAX,
} TableColour;

typedef struct TableColumn {
        const char *title;
        bool right;    /* numbers */
        unsigned least; /* columns that it keeps when the terminal is narrow; 0: it is never cut */
        unsigned optional; /* when the terminal is narrower still these are left out, 1 first; 0: never */
} TableColumn;

typedef struct Table Table;

/* Widths of characters are those of UTF-8, whatever the locale; "…" is written as "..." where the locale is another. Once, at the start. */
void table_setup(void);

int table_new(const TableColumn *columns, size_t n, Table **ret);
Table *table_free(Table *t);
DEFINE_CLEANUP(Table *, table_free);

/* Cells from left to right, row by row; NULL or "" becomes "-". An error sticks: table_print() tells. */
void table_add(Table *t, const char *cell);
void table_add_coloured(Table *t, const char *cell, TableColour colour);
void table_addf(Table *t, const char *format, ...) _printf_(2, 3);
size_t table_rows(const Table *t);

/* width 0: as wide as it gets, nothing is cut. Only the titles when there are no rows. */
int table_print(const Table *t, FILE *f, unsigned width, bool colours);

/* Rows alone, with the widths that fit them: for what is printed as it comes. */
int table_print_rows(const Table *t, FILE *f, unsigned width, bool colours);

/* s as it may stand on a terminal; to free. */
char *text_for_terminal(const char *s);
/* Columns that it takes there. */
unsigned text_width(const char *s);

const char *colour_begin(TableColour c, bool colours);
const char *colour_end(TableColour c, bool colours);
