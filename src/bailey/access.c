/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "bailey/access.h"
#include "basic/text.h"

static const char *const operations[ACCESS_OPERATIONS] = {"look", "read", "write", "execute", "connect", "bind", "send", "entry"};
static const char *const kinds[_ACCESS_KIND_MAX] = {
        [ACCESS_PATH] = "path", [ACCESS_ADDRESS] = "address", [ACCESS_ABSTRACT] = "abstract"};

const char *access_operation_to_string(unsigned bit) {
        return bit < ACCESS_OPERATIONS ? operations[bit] : NULL;
}

unsigned access_operation_from_string(const char *s) {
        for (unsigned i = 0; i < ACCESS_OPERATIONS; i++)
                if (streq(s, operations[i]))
                        return 1U << i;
        return 0;
}

void access_operations_print(unsigned operations_set, char *ret, size_t size) {
        size_t n = 0;

        ret[0] = 0;
        if (operations_set & ACCESSED_ENTRY)
                operations_set = (operations_set & ~(unsigned) ACCESSED_ENTRY) | ACCESSED_WRITE;
        if (operations_set & ~(unsigned) ACCESSED_LOOK)
                operations_set &= ~(unsigned) ACCESSED_LOOK;
        for (unsigned i = 0; i < ACCESS_OPERATIONS && n < size; i++)
                if (operations_set & (1U << i))
                        n += (size_t) snprintf(ret + n, size - n, "%s%s", n > 0 ? ", " : "", operations[i]);
}

const char *access_kind_to_string(AccessKind k) {
        return k >= 0 && k < _ACCESS_KIND_MAX ? kinds[k] : NULL;
}

AccessKind access_kind_from_string(const char *s) {
        for (AccessKind k = 0; k < _ACCESS_KIND_MAX; k++)
                if (streq(s, kinds[k]))
                        return k;
        return _ACCESS_KIND_INVALID;
}

void access_list_done(AccessList *list) {
        for (size_t i = 0; i < list->n; i++)
                free(list->items[i].name);
        free(list->items);
        free(list->places);
        *list = (AccessList) {};
}

void trace_done(Trace *t) {
        access_list_done(&t->accesses);
        free(t->target);
        free(t->working_directory);
        free(t->home);
        *t = (Trace) {};
}

static size_t place_of(const AccessList *list, AccessKind kind, const char *name) {
        uint64_t hash = 14695981039346656037U + (uint64_t) kind;

        for (const char *p = name; *p; p++)
                hash = (hash ^ (unsigned char) *p) * 1099511628211U;
        size_t i = (size_t) (hash ^ hash >> 32) & (list->n_places - 1);
        for (;; i = (i + 1) & (list->n_places - 1)) {
                const Access *a = list->places[i] > 0 ? &list->items[list->places[i] - 1] : NULL;
                if (!a || (a->kind == kind && streq(a->name, name)))
                        return i;
        }
}

/* Half of the places stay free, and there are always as many items to fill as that. */
static int grow(AccessList *list) {
        size_t n = list->n_places > 0 ? 2 * list->n_places : 256;
        Access *items = reallocarray(list->items, n / 2, sizeof(Access));

        if (!items)
                return -ENOMEM;
        list->items = items;
        uint32_t *places = calloc(n, sizeof(uint32_t));
        if (!places)
                return -ENOMEM;
        free(list->places);
        list->places = places;
        list->n_places = n;
        for (size_t i = 0; i < list->n; i++)
                list->places[place_of(list, list->items[i].kind, list->items[i].name)] = (uint32_t) i + 1;
        return 0;
}

Access *access_list_get(AccessList *list, AccessKind kind, const char *name) {
        if (list->n == list->n_places / 2 && grow(list) < 0)
                return NULL;
        size_t i = place_of(list, kind, name);
        if (list->places[i] > 0)
                return &list->items[list->places[i] - 1];
        size_t size = strlen(name);
        if (list->n >= ACCESSES_MAX || size > ACCESS_NAMES_MAX - list->names_size)
                return NULL;
        char *copy = strdup(name);
        if (!copy)
                return NULL;
        list->items[list->n] = (Access) {.kind = kind, .name = copy};
        list->places[i] = (uint32_t) ++list->n;
        list->names_size += size;
        return &list->items[list->n - 1];
}

static int compare(const void *a, const void *b) {
        const Access *x = a, *y = b;
        return x->kind != y->kind ? (x->kind > y->kind) - (x->kind < y->kind) : strcmp(x->name, y->name);
}

void access_list_sort(AccessList *list) {
        if (list->n > 0)
                qsort(list->items, list->n, sizeof(Access), compare);
        list->places = mfree(list->places);
        list->n_places = 0;
}
