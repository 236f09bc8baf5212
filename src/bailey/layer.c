/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "bailey/layer.h"
#include "basic/text.h"

Layer *layer_free(Layer *l) {
        if (!l)
                return NULL;
        for (size_t i = 0; i < l->n_rules; i++)
                free(l->rules[i].path);
        for (size_t i = 0; i < l->n_variables; i++) {
                free(l->variables[i].name);
                free(l->variables[i].value);
        }
        free(l->rules);
        free(l->variables);
        strv_free(l->egress_hosts);
        free(l->bind_ports);
        free(l->home);
        free(l->description);
        strv_free(l->applies_to);
        free(l->name);
        return mfree(l);
}

Layer *layer_new(const char *name) {
        _cleanup_(layer_freep) Layer *l = calloc(1, sizeof(Layer));

        if (!l)
                return NULL;
        l->limits = LIMITS_NONE;
        l->name = strdup(name);
        if (!l->name)
                return NULL;
        return TAKE_PTR(l);
}

void layer_list_done(LayerList *list) {
        for (size_t i = 0; i < list->n; i++)
                layer_free(list->items[i]);
        free(list->items);
        *list = (LayerList){};
}

int layer_list_add(LayerList *list, Layer *l) {
        Layer **grown = l ? reallocarray(list->items, list->n + 1, sizeof(Layer *)) : NULL;

        if (!grown) {
                layer_free(l);
                return -ENOMEM;
        }
        list->items = grown;
        grown[list->n++] = l;
        return 0;
}

LayerRule *layer_rule(Layer *l, const char *path) {
        for (size_t i = 0; i < l->n_rules; i++)
                if (streq(l->rules[i].path, path))
                        return &l->rules[i];

        char *copy = strdup(path);
        if (!copy)
                return NULL;
        LayerRule *grown = reallocarray(l->rules, l->n_rules + 1, sizeof(LayerRule));
        if (!grown) {
                free(copy);
                return NULL;
        }
        l->rules = grown;
        l->rules[l->n_rules] = (LayerRule){.path = copy};
        return &l->rules[l->n_rules++];
}

int layer_grant(Layer *l, const char *path, PathRights rights) {
        LayerRule *rule = layer_rule(l, path);
        if (!rule)
                return -ENOMEM;
        rule->rights |= rights;
        return 0;
}

bool variable_name_valid(const char *s, size_t size) {
        for (size_t i = 0; i < size; i++)
                if (!ascii_alpha(s[i]) && s[i] != '_' && (i == 0 || !ascii_digit(s[i])))
                        return false;
        return size > 0;
}
