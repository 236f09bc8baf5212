/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <stdarg.h>

#include "basic/text.h"
#include "basic/utf8.h"
#include "shared/json-check.h"

#define DEPTH_MAX 64U
#define MEMBERS_MAX 1024U      /* of one object: looking for repeated names is quadratic */
#define INTEGER_DIGITS_MAX 18U /* 10^18 - 1 < 2^63: no integer of that length can wrap */

/* Most names that are not the same differ in this, without being looked at. */
typedef struct Name {
        char *text;
        uint32_t hash;
} Name;

/* One pass from left to right. The members' names of all open objects lie on one stack; each object knows where its own begin. */
typedef struct Checker {
        const char *start, *at, *end;
        unsigned depth, max_depth;
        Name *names;
        size_t n_names, room;
        JsonProblem *problem;
} Checker;

_printf_(2, 3) static int fail(Checker *c, const char *format, ...) {
        JsonProblem *p = c->problem;
        va_list ap;

        if (p) {
                p->line = p->column = 1;
                for (const char *s = c->start; s < c->at; s++)
                        if (*s == '\n') {
                                p->line++;
                                p->column = 1;
                        } else
                                p->column++;
                va_start(ap, format);
                (void) vsnprintf(p->text, sizeof(p->text), format, ap);
                va_end(ap);
        }
        return -EBADMSG;
}

static void skip_space(Checker *c) {
        while (c->at < c->end && (*c->at == ' ' || *c->at == '\t' || *c->at == '\n' || *c->at == '\r'))
                c->at++;
}

/* What people write into configurations, as other formats allow. */
static int fail_expected(Checker *c, const char *what) {
        bool comment = c->at < c->end && (*c->at == '#' || (*c->at == '/' && c->end - c->at > 1 && (c->at[1] == '/' || c->at[1] == '*')));

        return fail(c, "%s is expected%s", what, comment ? "; there are no comments in JSON" : "");
}

static bool take(Checker *c, char what) {
        if (c->at >= c->end || *c->at != what)
                return false;
        c->at++;
        return true;
}

static int hex4(Checker *c, unsigned *ret) {
        unsigned value = 0;

        for (unsigned i = 0; i < 4; i++) {
                const char *digits = "0123456789abcdef";
                char lower = c->at < c->end ? ascii_lower(*c->at) : 0;
                const char *digit = lower ? strchr(digits, lower) : NULL;
                if (!digit)
                        return fail(c, "\\u is not followed by four hexadecimal digits");
                value = value * 16 + (unsigned) (digit - digits);
                c->at++;
        }
        *ret = value;
        return 0;
}

/* After "\u". A NUL is refused: C strings would end there, and two readers would see two texts. */
static int check_unicode_escape(Checker *c, char out[static 4], size_t *ret_size) {
        unsigned code, low;

        int r = hex4(c, &code);
        if (r < 0)
                return r;
        if (code >= 0xd800 && code < 0xdc00) {
                if (!take(c, '\\') || !take(c, 'u'))
                        return fail(c, "half of a surrogate pair");
                r = hex4(c, &low);
                if (r < 0)
                        return r;
                if (low < 0xdc00 || low >= 0xe000)
                        return fail(c, "half of a surrogate pair");
                code = 0x10000 + ((code - 0xd800) << 10) + (low - 0xdc00);
        } else if (code >= 0xdc00 && code < 0xe000)
                return fail(c, "half of a surrogate pair");
        if (code == 0)
                return fail(c, "a NUL in a string");
        *ret_size = utf8_put(code, out);
        return 0;
}

static int check_escape(Checker *c, char out[static 4], size_t *ret_size) {
        static const char from[] = "\"\\/bfnrt", to[] = "\"\\/\b\f\n\r\t";
        const char *at = c->at < c->end && *c->at ? strchr(from, *c->at) : NULL;

        if (take(c, 'u'))
                return check_unicode_escape(c, out, ret_size);
        if (!at)
                return fail(c, "an unknown escape in a string");
        c->at++;
        out[0] = to[at - from];
        *ret_size = 1;
        return 0;
}

/* At the opening quote. With ret, the decoded string, to free. */
static int check_string(Checker *c, char **ret) {
        _cleanup_free_ char *decoded = NULL;
        size_t size = 0;

        if (!take(c, '"'))
                return fail_expected(c, "a string in double quotes");
        if (ret) {
                const char *p = c->at;
                while (p < c->end && *p != '"')
                        p += *p == '\\' && c->end - p > 1 ? 2 : 1;
                decoded = malloc((size_t) (p - c->at) + 4); /* an escape is never shorter than what it stands for */
                if (!decoded)
                        return -ENOMEM;
        }
        while (!take(c, '"')) {
                char piece[4];
                size_t n;

                if (c->at >= c->end)
                        return fail(c, "a string without its closing quote");
                if (take(c, '\\')) {
                        int r = check_escape(c, piece, &n);
                        if (r < 0)
                                return r;
                } else {
                        n = utf8_sequence((const unsigned char *) c->at, (size_t) (c->end - c->at));
                        if (n == 0)
                                return fail(c, "bytes that are not UTF-8");
                        if ((unsigned char) *c->at < 0x20)
                                return fail(c, "a control character in a string");
                        memcpy(piece, c->at, n);
                        c->at += n;
                }
                if (decoded)
                        memcpy(decoded + size, piece, n);
                size += n;
        }
        if (ret) {
                decoded[size] = 0;
                *ret = TAKE_PTR(decoded);
        }
        return 0;
}

static size_t skip_digits(Checker *c) {
        const char *from = c->at;
        while (c->at < c->end && ascii_digit(*c->at))
                c->at++;
        return (size_t) (c->at - from);
}

static int check_number(Checker *c) {
        bool whole = true;

        (void) take(c, '-');
        const char *first = c->at;
        size_t n = skip_digits(c);
        if (n == 0)
                return fail_expected(c, "a value");
        if (n > 1 && *first == '0')
                return fail(c, "a number with a leading zero");
        if (take(c, '.')) {
                whole = false;
                if (skip_digits(c) == 0)
                        return fail(c, "a number that ends in a point");
        }
        if (take(c, 'e') || take(c, 'E')) {
                whole = false;
                if (!take(c, '+'))
                        (void) take(c, '-');
                if (skip_digits(c) == 0)
                        return fail(c, "a number without its exponent");
        }
        if (whole && n > INTEGER_DIGITS_MAX)
                return fail(c, "an integer of more than %u digits", INTEGER_DIGITS_MAX);
        return 0;
}

static int check_value(Checker *c);

/* FNV-1a. */
static uint32_t hash_name(const char *name) {
        uint32_t hash = 2166136261U;

        for (; *name; name++)
                hash = (hash ^ (unsigned char) *name) * 16777619U;
        return hash;
}

static int push_name(Checker *c, size_t mark, char *name) {
        uint32_t hash = hash_name(name);

        if (c->n_names - mark >= MEMBERS_MAX) {
                free(name);
                return fail(c, "an object of more than %u members", MEMBERS_MAX);
        }
        for (size_t i = mark; i < c->n_names; i++)
                if (c->names[i].hash == hash && streq(c->names[i].text, name)) {
                        _cleanup_free_ char *shown = string_escape_control(name);
                        int r = fail(c, "\"%.60s\" is given twice", shown ?: "");
                        free(name);
                        return r;
                }
        if (c->n_names == c->room) {
                size_t room = c->room ? c->room * 2 : 64;
                Name *grown = reallocarray(c->names, room, sizeof(Name));
                if (!grown) {
                        free(name);
                        return -ENOMEM;
                }
                c->names = grown;
                c->room = room;
        }
        c->names[c->n_names++] = (Name){name, hash};
        return 0;
}

static void pop_names(Checker *c, size_t mark) {
        while (c->n_names > mark)
                free(c->names[--c->n_names].text);
}

static int check_member(Checker *c, size_t mark) {
        char *name;

        skip_space(c);
        int r = check_string(c, &name);
        if (r < 0)
                return r;
        r = push_name(c, mark, name);
        if (r < 0)
                return r;
        skip_space(c);
        if (!take(c, ':'))
                return fail(c, "a ':' is missing after a name");
        return check_value(c);
}

/* After the opening bracket; `close` is '}' or ']'. */
static int check_container(Checker *c, char close) {
        size_t mark = c->n_names;
        int r = 0;

        if (++c->depth > c->max_depth)
                return fail(c, "nested deeper than %u", c->max_depth);
        skip_space(c);
        if (!take(c, close))
                for (;;) {
                        r = close == '}' ? check_member(c, mark) : check_value(c);
                        if (r < 0)
                                return r;
                        skip_space(c);
                        if (take(c, close))
                                break;
                        if (!take(c, ','))
                                return fail(c, "a ',' or '%c' is missing", close);
                        skip_space(c);
                        if (c->at < c->end && *c->at == close)
                                return fail(c, "there is a ',' before '%c', where nothing follows", close);
                }
        pop_names(c, mark);
        c->depth--;
        return 0;
}

static int check_value(Checker *c) {
        static const char *const words[] = {"true", "false", "null"};

        skip_space(c);
        if (take(c, '{'))
                return check_container(c, '}');
        if (take(c, '['))
                return check_container(c, ']');
        if (c->at < c->end && *c->at == '"')
                return check_string(c, NULL);
        for (size_t i = 0; i < ELEMENTSOF(words); i++) {
                size_t n = strlen(words[i]);
                if ((size_t) (c->end - c->at) >= n && memcmp(c->at, words[i], n) == 0) {
                        c->at += n;
                        return 0;
                }
        }
        return check_number(c);
}

int json_check(const char *text, size_t size, unsigned max_depth, JsonProblem *ret_problem) {
        Checker c = {.start = text, .at = text, .end = text + size, .max_depth = MIN(max_depth, DEPTH_MAX), .problem = ret_problem};

        int r = check_value(&c);
        if (r >= 0) {
                skip_space(&c);
                if (c.at < c.end)
                        r = fail(&c, "something follows the end of the value");
        }
        pop_names(&c, 0);
        free(c.names);
        return r;
}

int json_read_object(const char *text, size_t size, unsigned max_depth, JsonParser **ret_parser, JsonObject **ret,
                     JsonProblem *ret_problem) {
        _cleanup_json_parser_ JsonParser *parser = NULL;

        int r = json_check(text, size, max_depth, ret_problem);
        if (r < 0)
                return r;
        parser = json_parser_new();
        Checker c = {.start = text, .at = text, .end = text + size, .problem = ret_problem};
        if (!json_parser_load_from_data(parser, text, (gssize) size, NULL))
                return fail(&c, "not valid JSON");
        JsonNode *root = json_parser_get_root(parser);
        if (!root || !JSON_NODE_HOLDS_OBJECT(root))
                return fail(&c, "not a JSON object");
        *ret = json_node_get_object(root);
        *ret_parser = g_steal_pointer(&parser);
        return 0;
}
