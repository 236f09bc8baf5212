/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Reads JSON objects into structs by tables of keys, and collects every problem on the way. A problem makes the configuration
 * useless but never stops the reading; an allocation that fails does (error). */

#include "basic/macro.h" /* before GLib, which defines MIN and MAX anew */

#include <json-glib/json-glib.h>

#include "errandd/config.h"

typedef enum ConfigType {
        CONFIG_OBJECT,    /* children; a bool at offset says that it is given, unless offset is NO_OFFSET */
        CONFIG_BOOL,      /* bool */
        CONFIG_COUNT,     /* uint64_t in min…max */
        CONFIG_MSEC,      /* usec_t; min…max in milliseconds */
        CONFIG_BYTES,     /* uint64_t in min…max; a number, or a text such as "4g" */
        CONFIG_CPUS,      /* uint64_t of thousandths; a number */
        CONFIG_WORD,      /* int: the index in words */
        CONFIG_TEXT,      /* char *; check */
        CONFIG_PATH,      /* char *, absolute, collapsed */
        CONFIG_TEXTS,     /* char **; check of each, none twice unless `repeats` */
        CONFIG_PATHS,     /* char **, absolute, collapsed */
        CONFIG_HOSTS,     /* char **, normalized patterns */
        CONFIG_INTERNAL,  /* ConfigEgress: true, false, or a list of address literals */
        CONFIG_PORTS,     /* uint16_t * and, right after it, size_t */
        CONFIG_ENV,       /* char ** of KEY=VALUE */
        CONFIG_SECRET,    /* SecretSource; check of an inline one */
        CONFIG_PROVIDERS, /* ConfigAgent: providers and n_providers */
        CONFIG_CAPABILITIES, /* ConfigProvider: capabilities, n_capabilities, every_call */
} ConfigType;

#define NO_OFFSET SIZE_MAX

typedef struct ConfigKey ConfigKey;
struct ConfigKey {
        const char *name;
        ConfigType type;
        size_t offset; /* in the struct of the table: Config, ConfigProvider or Capability */
        const char *summary; /* one sentence, for editors */
        uint64_t min, max;   /* 0, 0 = no bounds; of lists and texts: length */
        const char *fallback; /* the default as text, NULL = zero, NULL or empty */
        const char *const *words;
        const char *(*check)(const char *s); /* NULL = fine, else a phrase: "is not …" */
        SecretForm form;
        bool repeats;
        bool quiet; /* its value is never shown: people paste keys into the wrong place */
        const ConfigKey *children;
        size_t n_children;
};

typedef struct ConfigReader {
        const char *name; /* of the file */
        ConfigMode mode;
        char **problems, **warnings;
        char **given; /* Config.given */
        char path[512]; /* of the value being read; long names are cut in it */
        size_t path_size;
        bool inline_secrets;
        int error; /* -ENOMEM */
} ConfigReader;

/* "NAME: PATH: …". The path is the reader's current one; nothing of the text is escaped here. */
void config_problem(ConfigReader *r, const char *format, ...) _printf_(2, 3);
void config_warning(ConfigReader *r, const char *format, ...) _printf_(2, 3);

/* Enters a member or an element and returns what config_leave() takes to come back. */
size_t config_enter(ConfigReader *r, const char *member);
size_t config_enter_index(ConfigReader *r, unsigned index);
void config_leave(ConfigReader *r, size_t mark);

/* Text from the file as it may stand in a sentence: quoted, escaped, cut. Valid until the fourth next call. */
const char *config_show(const char *s);

/* Says what is wrong with a member that no key has; top-level tables suggest names from all over the file. */
typedef void (*ConfigUnknown)(ConfigReader *r, const ConfigKey *keys, size_t n_keys, const char *member);
void config_unknown(ConfigReader *r, const ConfigKey *keys, size_t n_keys, const char *member);

void config_read_object(ConfigReader *r, const ConfigKey *keys, size_t n_keys, JsonNode *node, void *base, ConfigUnknown unknown);
void config_read_value(ConfigReader *r, const ConfigKey *key, JsonNode *node, void *base);

/* Sets every field to its default; base is zeroed memory. */
void config_set_defaults(ConfigReader *r, const ConfigKey *keys, size_t n_keys, void *base);

/* By config-providers.c. */
void config_read_providers(ConfigReader *r, JsonNode *node, ConfigAgent *agent);
void config_read_capabilities(ConfigReader *r, JsonNode *node, ConfigProvider *provider);

const char *json_kind(JsonNode *node); /* "a number", "a list", …: for sentences */
