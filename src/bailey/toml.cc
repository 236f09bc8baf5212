/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* With exceptions, for two reasons: toml++ 3.3 meets some plain syntax errors ("[^x]") by an assertion, which must become a
 * message and neither an abort nor, with NDEBUG, undefined behaviour; and memory that runs out must become -ENOMEM. None leaves
 * this file. */
namespace {
struct AssertionFailed {};
[[noreturn]] void assertion_failed() {
        throw AssertionFailed();
}
} // namespace
#undef NDEBUG
#define TOML_ASSERT(expr) ((expr) ? static_cast<void>(0) : assertion_failed())
#define TOML_EXCEPTIONS 1
#define TOML_HEADER_ONLY 1
/* The other way reads a float through a stream, whose locales would be half of the program and of what is relocated at each start. */
#define TOML_FLOAT_CHARCONV 1
#define TOML_ENABLE_FORMATTERS 0
#define TOML_MAX_NESTED_VALUES 32

#if defined(__GNUC__)
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wnull-dereference"
#pragma GCC diagnostic ignored "-Wshadow"
#endif
/* Its table of blank characters calls every other character from U+00A0 on unreachable. */
#if __has_include(<toml++/impl/unicode.hpp>)
#include <toml++/impl/forward_declarations.hpp>
#undef TOML_UNREACHABLE
#define TOML_UNREACHABLE return false
#include <toml++/impl/unicode.hpp>
#elif __has_include(<toml++/impl/unicode.h>)
#include <toml++/impl/forward_declarations.h>
#undef TOML_UNREACHABLE
#define TOML_UNREACHABLE return false
#include <toml++/impl/unicode.h>
#endif
#undef TOML_UNREACHABLE
#define TOML_UNREACHABLE __builtin_unreachable()
#include <toml++/toml.h>
#if defined(__GNUC__)
#pragma GCC diagnostic pop
#endif

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <new>
#include <string_view>

#include "bailey/toml.h"
extern "C" {
#include "basic/text.h"
#include "basic/utf8.h"
}

namespace {

/* What conversion found wrong; set once. */
struct Trouble {
        TomlProblem *problem;
        int error;
};

int complain(Trouble &trouble, unsigned line, unsigned column, const char *text) {
        trouble.problem->line = line;
        trouble.problem->column = column;
        snprintf(trouble.problem->text, sizeof(trouble.problem->text), "%s", text);
        return trouble.error = -EBADMSG;
}

int copy_string(std::string_view s, unsigned line, unsigned column, Trouble &trouble, char **ret) {
        if (s.find('\0') != std::string_view::npos)
                return complain(trouble, line, column, "a NUL in a string");
        char *copy = strndup(s.data(), s.size());
        if (!copy)
                return trouble.error = -ENOMEM;
        *ret = copy;
        return 0;
}

int convert(const toml::node &node, unsigned depth, TomlValue *value, Trouble &trouble);

int by_place(const void *a, const void *b) {
        auto x = static_cast<const TomlValue *>(a), y = static_cast<const TomlValue *>(b);
        if (x->line != y->line)
                return x->line < y->line ? -1 : 1;
        return x->column < y->column ? -1 : x->column > y->column;
}

int convert_table(const toml::table &table, unsigned depth, TomlValue *value, Trouble &trouble) {
        for (auto &&[key, node] : table) {
                TomlValue *item = &value->items[value->n_items++];
                item->line = key.source().begin.line;
                item->column = key.source().begin.column;
                int r = copy_string(key.str(), item->line, item->column, trouble, &item->key);
                if (r < 0 || (r = convert(node, depth + 1, item, trouble)) < 0)
                        return r;
        }
        /* toml++ sorts by name; problems are told in the order of the text. */
        qsort(value->items, value->n_items, sizeof(TomlValue), by_place);
        return 0;
}

int convert_array(const toml::array &array, unsigned depth, TomlValue *value, Trouble &trouble) {
        for (auto &&node : array) {
                TomlValue *item = &value->items[value->n_items++];
                item->line = node.source().begin.line;
                item->column = node.source().begin.column;
                int r = convert(node, depth + 1, item, trouble);
                if (r < 0)
                        return r;
        }
        return 0;
}

int convert(const toml::node &node, unsigned depth, TomlValue *value, Trouble &trouble) {
        const toml::table *table = node.as_table();
        const toml::array *array = node.as_array();

        if (depth > TOML_DEPTH_MAX)
                return complain(trouble, value->line, value->column, "nested too deeply");

        if (table || array) {
                value->type = table ? TOML_TABLE : TOML_ARRAY;
                size_t n = table ? table->size() : array->size();
                value->items = static_cast<TomlValue *>(calloc(n ? n : 1, sizeof(TomlValue)));
                if (!value->items)
                        return trouble.error = -ENOMEM;
                return table ? convert_table(*table, depth, value, trouble) : convert_array(*array, depth, value, trouble);
        }
        if (const auto *string = node.as_string()) {
                value->type = TOML_STRING;
                return copy_string(string->get(), value->line, value->column, trouble, &value->string);
        }
        if (const auto *integer = node.as_integer()) {
                value->type = TOML_INTEGER;
                value->integer = integer->get();
        } else if (const auto *boolean = node.as_boolean()) {
                value->type = TOML_BOOLEAN;
                value->boolean = boolean->get();
        } else
                value->type = TOML_OTHER;
        return 0;
}

/* Reads over a document as far as it is one, telling strings and comments from the rest, and stops at what toml++ should not
 * see: bytes that TOML allows nowhere, a character beyond ASCII outside of strings and comments, and dotted keys of thousands of
 * parts, whose tables it takes down by recursion. After a first mistake the two readers may disagree; toml++ goes no further. */
class Scan {
public:
        Scan(const char *text, size_t size) : p(reinterpret_cast<const unsigned char *>(text)), end(p + size), start(p) {}

        unsigned line = 1;
        unsigned column() const {
                return static_cast<unsigned>(p - start) + 1;
        }

        /* NULL, or what is wrong at line and column(). */
        const char *run() {
                if (size() >= 3 && memcmp(p, "\xef\xbb\xbf", 3) == 0)
                        p += 3;
                while (p < end) {
                        size_t n = utf8_sequence(p, size());
                        if (n == 0)
                                return "not valid UTF-8";
                        if (*p == '\r' ? size() < 2 || p[1] != '\n' : (*p < 0x20 && *p != '\t' && *p != '\n') || *p == 0x7f)
                                return "a control character";
                        if (*p == '\n')
                                newline();
                        else if (state == NONE && n > 1)
                                return "a character outside of strings that is not ASCII";
                        else if (n > 1)
                                p += n;
                        else if (!step())
                                return "a key of more than 512 parts";
                }
                return nullptr;
        }

private:
        const unsigned char *p, *end, *start; /* start: of the line */
        enum State { NONE, COMMENT, STRING, LONG_STRING } state = NONE;
        unsigned char quote = 0;
        unsigned dots = 0;

        size_t size() const {
                return static_cast<size_t>(end - p);
        }

        bool three_quotes(unsigned char c) const {
                return size() >= 3 && p[0] == c && p[1] == c && p[2] == c;
        }

        void newline() {
                start = ++p;
                line++;
                dots = 0;
                if (state != LONG_STRING)
                        state = NONE;
        }

        /* One ASCII character but a newline. */
        bool step() {
                if (state == NONE && (*p == '"' || *p == '\'')) {
                        quote = *p;
                        state = three_quotes(quote) ? LONG_STRING : STRING;
                        p += state == LONG_STRING ? 3 : 1;
                        return true;
                }
                if (state == NONE && *p == '#')
                        state = COMMENT;
                else if (state == NONE && *p == '.' && ++dots > TOML_LINE_DOTS_MAX)
                        return false;
                else if (state != NONE && state != COMMENT && quote == '"' && *p == '\\' && size() > 1 && p[1] > 0x1f &&
                         p[1] < 0x7f)
                        p++;
                else if (state == STRING && *p == quote)
                        state = NONE;
                else if (state == LONG_STRING && three_quotes(quote)) {
                        /* Up to two more are the string's own. */
                        p += 2;
                        for (int i = 0; i < 2 && size() > 1 && p[1] == quote; i++)
                                p++;
                        state = NONE;
                }
                p++;
                return true;
        }
};

/* Where toml++'s assertion about keys was met: the first header that no key follows. */
unsigned suspect_line(std::string_view text) {
        unsigned line = 1;

        for (size_t at = 0; at < text.size(); line++) {
                size_t next = MIN(text.find('\n', at), text.size());
                std::string_view one = text.substr(at, next - at);
                size_t i = one.find_first_not_of(" \t");
                if (i != one.npos && one[i] == '[') {
                        i = one.find_first_not_of("[ \t", i);
                        if (i != one.npos && one[i] != ']' && one[i] != '"' && one[i] != '\'' && one[i] != '_' && one[i] != '-' &&
                            !ascii_alpha(one[i]) && !ascii_digit(one[i]))
                                return line;
                }
                at = next + 1;
        }
        return 1;
}

int parse(std::string_view text, TomlValue *value, Trouble &trouble) try {
        return convert(toml::parse(text), 0, value, trouble);
} catch (const toml::parse_error &error) {
        return complain(trouble, error.source().begin.line, error.source().begin.column, error.what());
} catch (const AssertionFailed &) {
        return complain(trouble, suspect_line(text), 1, "a table, key or value is malformed");
} catch (const std::bad_alloc &) {
        return -ENOMEM;
}

void done(TomlValue *value) {
        for (size_t i = 0; i < value->n_items; i++)
                done(&value->items[i]);
        free(value->items);
        free(value->key);
        free(value->string);
}

} // namespace

extern "C" TomlValue *toml_free(TomlValue *value) {
        if (value)
                done(value);
        free(value);
        return nullptr;
}

extern "C" int toml_parse(const char *text, size_t size, TomlValue **ret, TomlProblem *ret_problem) {
        Trouble trouble{ret_problem, 0};
        if (size > TOML_SIZE_MAX)
                return complain(trouble, 1, 1, "larger than 256 KiB");
        Scan scan(text, size);
        const char *wrong = scan.run();
        if (wrong)
                return complain(trouble, scan.line, scan.column(), wrong);

        auto value = static_cast<TomlValue *>(calloc(1, sizeof(TomlValue)));
        if (!value)
                return -ENOMEM;
        value->line = value->column = 1;
        int r = parse(std::string_view(text, size), value, trouble);
        if (r < 0) {
                toml_free(value);
                return r;
        }
        *ret = value;
        return 0;
}

extern "C" const char *toml_type_to_string(TomlType type) {
        static const char *const names[] = {"a table", "a list", "a string", "an integer", "true or false", "a number or date"};
        return names[type];
}
