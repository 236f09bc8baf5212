/* SPDX-License-Identifier: LGPL-2.1-or-later */
#define TOML_EXCEPTIONS 0
#define TOML_HEADER_ONLY 1
#define TOML_ENABLE_FORMATTERS 0
#define TOML_MAX_NESTED_VALUES 32

#if defined(__GNUC__)
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wnull-dereference"
#pragma GCC diagnostic ignored "-Wshadow"
#endif
#include <toml++/toml.h>
#if defined(__GNUC__)
#pragma GCC diagnostic pop
#endif

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string_view>

#include "bailey/toml.h"

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

/* A dotted key of some ten thousand parts is a tree of that depth, which toml++ takes down by recursion. Strings are told apart
 * only roughly: a line of more dots than the cap is refused wherever they really stand. */
bool too_many_dots(const char *text, size_t size, unsigned *ret_line) {
        unsigned line = 1, dots = 0;
        char quote = 0;

        for (size_t i = 0; i < size; i++) {
                char c = text[i];
                if (c == '\n') {
                        line++;
                        dots = 0;
                        quote = 0;
                } else if (quote) {
                        if (c == '\\' && quote == '"')
                                i += i + 1 < size && text[i + 1] != '\n';
                        else if (c == quote)
                                quote = 0;
                } else if (c == '"' || c == '\'')
                        quote = c;
                else if (c == '.' && ++dots > TOML_LINE_DOTS_MAX) {
                        *ret_line = line;
                        return true;
                }
        }
        return false;
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
        unsigned line;

        if (size > TOML_SIZE_MAX)
                return complain(trouble, 1, 1, "larger than 256 KiB");
        if (too_many_dots(text, size, &line))
                return complain(trouble, line, 1, "a key of more than 512 parts");

        toml::parse_result result = toml::parse(std::string_view(text, size));
        if (!result) {
                const toml::parse_error &error = result.error();
                std::string_view description = error.description();
                snprintf(ret_problem->text, sizeof(ret_problem->text), "%.*s", static_cast<int>(description.size()),
                         description.data());
                ret_problem->line = error.source().begin.line;
                ret_problem->column = error.source().begin.column;
                return -EBADMSG;
        }

        auto value = static_cast<TomlValue *>(calloc(1, sizeof(TomlValue)));
        if (!value)
                return -ENOMEM;
        value->line = value->column = 1;
        int r = convert(result.table(), 0, value, trouble);
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
