/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* The table of keys as a JSON schema for editors. Written with two spaces a level, because the result is kept in the tree and read
 * by people. */

#include <inttypes.h>
#include <stdarg.h>

#include "basic/text.h"
#include "errandd/config-keys.h"

typedef struct Schema {
        FILE *file;
        unsigned depth;
        bool comma;
} Schema;

static void begin_line(Schema *s) {
        if (s->comma)
                fputc(',', s->file);
        if (s->depth > 0)
                fputc('\n', s->file);
        fprintf(s->file, "%*s", (int) (2 * s->depth), "");
        s->comma = true;
}

/* Texts here are ours: no quote and no backslash but in patterns, which are written by line(). */
_printf_(2, 3) static void line(Schema *s, const char *format, ...) {
        va_list ap;

        begin_line(s);
        va_start(ap, format);
        vfprintf(s->file, format, ap);
        va_end(ap);
}

static void open_block(Schema *s, const char *name, char bracket) {
        if (name)
                line(s, "\"%s\": %c", name, bracket);
        else
                line(s, "%c", bracket);
        s->depth++;
        s->comma = false;
}

static void close_block(Schema *s, char bracket) {
        s->depth--;
        fprintf(s->file, "\n%*s%c", (int) (2 * s->depth), "", bracket);
        s->comma = true;
}

static void write_words(Schema *s, const ConfigKey *key) {
        begin_line(s);
        fputs("\"enum\": [", s->file);
        for (size_t i = 0; key->words[i]; i++)
                fprintf(s->file, "%s\"%s\"", i > 0 ? ", " : "", key->words[i]);
        fputc(']', s->file);
}

static void write_bounds(Schema *s, const ConfigKey *key, const char *least, const char *most, uint64_t scale) {
        if (key->min % scale == 0)
                line(s, "\"%s\": %" PRIu64, least, key->min / scale);
        else
                line(s, "\"%s\": %g", least, (double) key->min / (double) scale);
        line(s, "\"%s\": %" PRIu64, most, key->max / scale);
}

static void write_list(Schema *s, const ConfigKey *key) {
        line(s, "\"type\": \"array\"");
        if (key->min > 0)
                line(s, "\"minItems\": %" PRIu64, key->min);
        line(s, "\"maxItems\": %" PRIu64, key->max);
        if (!key->repeats)
                line(s, "\"uniqueItems\": true");
        open_block(s, "items", '{');
        if (key->type == CONFIG_PORTS) {
                line(s, "\"type\": \"integer\"");
                line(s, "\"minimum\": 1");
                line(s, "\"maximum\": 65535");
        } else
                line(s, "\"type\": \"string\"");
        if (key->type == CONFIG_PATHS)
                line(s, "\"pattern\": \"^/\"");
        if (key->words)
                write_words(s, key);
        close_block(s, '}');
}

static void write_secret(Schema *s) {
        static const char *const members[] = {"file", "systemdCredential"};

        open_block(s, "oneOf", '[');
        line(s, "{ \"type\": \"string\", \"minLength\": 1 }");
        for (size_t i = 0; i < ELEMENTSOF(members); i++) {
                open_block(s, NULL, '{');
                line(s, "\"type\": \"object\"");
                line(s, "\"additionalProperties\": false");
                line(s, "\"required\": [\"%s\"]", members[i]);
                line(s, "\"properties\": { \"%s\": { \"type\": \"string\", \"pattern\": \"%s\" } }", members[i],
                     i == 0 ? "^/" : "^[A-Za-z0-9_-][A-Za-z0-9_.-]{0,254}$");
                close_block(s, '}');
        }
        close_block(s, ']');
}

static void write_keys(Schema *s, const ConfigKey *keys, size_t n_keys, bool closed);

static void write_capabilities(Schema *s) {
        open_block(s, "oneOf", '[');
        line(s, "{ \"const\": \"*\" }");
        open_block(s, NULL, '{');
        line(s, "\"type\": \"array\"");
        line(s, "\"minItems\": 1");
        line(s, "\"maxItems\": %u", CAPABILITIES_MAX);
        open_block(s, "items", '{');
        line(s, "\"required\": [\"method\", \"path\"]");
        write_keys(s, config_capability_keys, n_config_capability_keys, true);
        close_block(s, '}');
        close_block(s, '}');
        close_block(s, ']');
}

static void write_providers(Schema *s) {
        line(s, "\"type\": \"object\"");
        line(s, "\"maxProperties\": %u", CONFIG_PROVIDERS_MAX);
        line(s, "\"propertyNames\": { \"pattern\": \"^[a-z0-9][a-z0-9-]{0,31}$\" }");
        open_block(s, "additionalProperties", '{');
        write_keys(s, config_provider_keys, n_config_provider_keys, false);
        close_block(s, '}');
}

static void write_env(Schema *s) {
        line(s, "\"type\": \"object\"");
        line(s, "\"propertyNames\": { \"pattern\": \"^[A-Za-z_][A-Za-z0-9_]*$\", \"not\": { \"enum\": [\"PATH\", \"HOME\"] } }");
        line(s, "\"additionalProperties\": { \"type\": \"string\" }");
}

static void write_number(Schema *s, const ConfigKey *key) {
        bool bytes = key->type == CONFIG_BYTES;

        line(s, "\"type\": %s", key->type == CONFIG_CPUS ? "\"number\"" : bytes ? "[\"integer\", \"string\"]" : "\"integer\"");
        write_bounds(s, key, "minimum", "maximum", key->type == CONFIG_CPUS ? CONFIG_CPUS_SCALE : 1);
        if (bytes)
                line(s, "\"pattern\": \"^[0-9]+[kmgtKMGT]?$\"");
}

static void write_type(Schema *s, const ConfigKey *key) {
        switch (key->type) {
        case CONFIG_OBJECT:
                return write_keys(s, key->children, key->n_children, true);
        case CONFIG_BOOL:
                return line(s, "\"type\": \"boolean\"");
        case CONFIG_COUNT:
        case CONFIG_MSEC:
        case CONFIG_CPUS:
        case CONFIG_BYTES:
                return write_number(s, key);
        case CONFIG_WORD:
                return write_words(s, key);
        case CONFIG_PATH:
                line(s, "\"type\": \"string\"");
                return line(s, "\"pattern\": \"^/\"");
        case CONFIG_TEXT:
                line(s, "\"type\": \"string\"");
                if (key->max > 0)
                        line(s, "\"maxLength\": %" PRIu64, key->max);
                return;
        case CONFIG_TEXTS:
        case CONFIG_PATHS:
        case CONFIG_HOSTS:
        case CONFIG_PORTS:
                return write_list(s, key);
        case CONFIG_INTERNAL:
                return line(s,
                            "\"oneOf\": [{ \"type\": \"boolean\" }, { \"type\": \"array\", \"items\": { \"type\": \"string\" } }]");
        case CONFIG_ENV:
                return write_env(s);
        case CONFIG_SECRET:
                return write_secret(s);
        case CONFIG_PROVIDERS:
                return write_providers(s);
        case CONFIG_CAPABILITIES:
                return write_capabilities(s);
        }
}

static void write_default(Schema *s, const ConfigKey *key) {
        bool text = key->type == CONFIG_BYTES || key->type == CONFIG_WORD || key->type == CONFIG_TEXT || key->type == CONFIG_PATH;

        if (!key->fallback)
                return;
        if (key->type == CONFIG_PORTS)
                line(s, "\"default\": [%s]", key->fallback);
        else
                line(s, "\"default\": %s%s%s", text ? "\"" : "", key->fallback, text ? "\"" : "");
}

static void write_keys(Schema *s, const ConfigKey *keys, size_t n_keys, bool closed) {
        line(s, "\"type\": \"object\"");
        if (closed)
                line(s, "\"additionalProperties\": false");
        open_block(s, "properties", '{');
        for (size_t i = 0; i < n_keys; i++) {
                open_block(s, keys[i].name, '{');
                line(s, "\"description\": \"%s\"", keys[i].summary);
                write_default(s, &keys[i]);
                write_type(s, &keys[i]);
                close_block(s, '}');
        }
        close_block(s, '}');
}

int config_schema_write(char **ret) {
        char *text = NULL;
        size_t size;
        Schema s = {.file = open_memstream(&text, &size)};

        if (!s.file)
                return -ENOMEM;
        open_block(&s, NULL, '{');
        line(&s, "\"$schema\": \"https://json-schema.org/draft/2020-12/schema\"");
        line(&s, "\"title\": \"errand.json\"");
        write_keys(&s, config_keys, n_config_keys, true);
        close_block(&s, '}');
        fputc('\n', s.file);
        bool failed = ferror(s.file);
        if (fclose(s.file) != 0 || failed) {
                free(text);
                return -ENOMEM;
        }
        *ret = text;
        return 0;
}
