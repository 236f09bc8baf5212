/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "basic/text.h"
#include "shared/bus-vtable.h"

/* The next member of that type ('M', 'S', 'P', 'W'; 0: any), NULL at the end; begin with the vtable itself. */
static const sd_bus_vtable *vtable_next(const sd_bus_vtable *after, char type) {
        const sd_bus_vtable *v = after;

        if (v->type == _SD_BUS_VTABLE_END)
                return NULL;
        for (v++; v->type != _SD_BUS_VTABLE_END; v++)
                if (type == 0 || v->type == type)
                        return v;
        return NULL;
}

/* Bytes of the first complete type in a signature that libsystemd has accepted. */
static size_t type_length(const char *s) {
        size_t n = 0;

        while (s[n] == 'a')
                n++;
        if (s[n] != '(' && s[n] != '{')
                return n + 1;
        for (unsigned depth = 0;; n++) {
                if (s[n] == '(' || s[n] == '{')
                        depth++;
                else if ((s[n] == ')' || s[n] == '}') && --depth == 0)
                        return n + 1;
        }
}

/* Names follow each other, each with its NUL. Returns where the next ones begin. */
static const char *write_arguments(FILE *f, const char *signature, const char *names, const char *direction) {
        for (size_t n; *signature; signature += n) {
                n = type_length(signature);
                fprintf(f, "      <arg type=\"%.*s\"", (int) n, signature);
                if (names && *names) {
                        fprintf(f, " name=\"%s\"", names);
                        names += strlen(names) + 1;
                }
                if (direction)
                        fprintf(f, " direction=\"%s\"", direction);
                fputs("/>\n", f);
        }
        return names;
}

static void write_method(FILE *f, const sd_bus_vtable *v) {
        const char *names = v->x.method.names;

        fprintf(f, "    <method name=\"%s\"", v->x.method.member);
        if (!*v->x.method.signature && !*v->x.method.result) {
                fputs("/>\n", f);
                return;
        }
        fputs(">\n", f);
        names = write_arguments(f, v->x.method.signature, names, "in");
        write_arguments(f, v->x.method.result, names, "out");
        fputs("    </method>\n", f);
}

static void write_property(FILE *f, const sd_bus_vtable *v) {
        const char *emits = v->flags & SD_BUS_VTABLE_PROPERTY_CONST ? "const" :
                            v->flags & SD_BUS_VTABLE_PROPERTY_EMITS_INVALIDATION ? "invalidates" :
                            v->flags & SD_BUS_VTABLE_PROPERTY_EMITS_CHANGE ? NULL : "false";

        fprintf(f, "    <property name=\"%s\" type=\"%s\" access=\"%s\"", v->x.property.member, v->x.property.signature,
                v->type == _SD_BUS_VTABLE_WRITABLE_PROPERTY ? "readwrite" : "read");
        if (!emits) {
                fputs("/>\n", f); /* "true" is what the specification takes for granted */
                return;
        }
        fprintf(f, ">\n      <annotation name=\"org.freedesktop.DBus.Property.EmitsChangedSignal\" value=\"%s\"/>\n    </property>\n", emits);
}

void vtable_introspect(const char *interface, const sd_bus_vtable *vtable, FILE *f) {
        fprintf(f, "  <interface name=\"%s\">\n", interface);
        for (const sd_bus_vtable *v = vtable; (v = vtable_next(v, 0));)
                switch (v->type) {
                case _SD_BUS_VTABLE_METHOD:
                        write_method(f, v);
                        break;
                case _SD_BUS_VTABLE_SIGNAL:
                        fprintf(f, "    <signal name=\"%s\">\n", v->x.signal.member);
                        write_arguments(f, v->x.signal.signature, v->x.signal.names, NULL);
                        fputs("    </signal>\n", f);
                        break;
                default:
                        write_property(f, v);
                }
        fputs("  </interface>\n", f);
}

static int append_property(sd_bus_message *m, const char *path, const char *interface, const sd_bus_vtable *v, void *userdata) {
        sd_bus_error error = SD_BUS_ERROR_NULL;
        int r;

        r = sd_bus_message_open_container(m, 'e', "sv");
        if (r >= 0)
                r = sd_bus_message_append_basic(m, 's', v->x.property.member);
        if (r >= 0)
                r = sd_bus_message_open_container(m, 'v', v->x.property.signature);
        if (r >= 0)
                r = v->x.property.get(sd_bus_message_get_bus(m), path, interface, v->x.property.member, m, userdata, &error);
        if (r >= 0 && sd_bus_error_is_set(&error))
                r = -sd_bus_error_get_errno(&error);
        sd_bus_error_free(&error);
        if (r >= 0)
                r = sd_bus_message_close_container(m);
        return r < 0 ? r : sd_bus_message_close_container(m);
}

int vtable_append_properties(sd_bus_message *m, const char *path, const char *interface, const sd_bus_vtable *vtable, bool changing,
                             void *userdata) {
        int r;

        r = sd_bus_message_open_container(m, 'a', "{sv}");
        for (const sd_bus_vtable *v = vtable; r >= 0 && (v = vtable_next(v, _SD_BUS_VTABLE_PROPERTY));)
                if (!changing || v->flags & SD_BUS_VTABLE_PROPERTY_EMITS_CHANGE)
                        r = append_property(m, path, interface, v, userdata);
        return r < 0 ? r : sd_bus_message_close_container(m);
}
