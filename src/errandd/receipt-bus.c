/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "basic/text.h"
#include "errandd/bus-objects.h"
#include "shared/bus-message.h"

/* A receipt's fields, for its object's properties and for ListReceipts. */
static const struct ReceiptField {
        const char *name;
        size_t offset;
        bool text; /* else a number */
} fields[] = {
        {"EndedUSec", offsetof(StoredReceipt, ended), false},
        {"Session", offsetof(StoredReceipt, session), true},
        {"Provider", offsetof(StoredReceipt, provider), true},
        {"CredentialName", offsetof(StoredReceipt, credential), true},
        {"Host", offsetof(StoredReceipt, host), true},
        {"Method", offsetof(StoredReceipt, method), true},
        {"Path", offsetof(StoredReceipt, path), true},
        {"QueryLength", offsetof(StoredReceipt, query), false},
        {"Status", offsetof(StoredReceipt, status), false},
        {"DurationUSec", offsetof(StoredReceipt, duration), false},
        {"BytesUp", offsetof(StoredReceipt, up), false},
        {"BytesDown", offsetof(StoredReceipt, down), false},
        {"Unrecorded", offsetof(StoredReceipt, unrecorded), false},
};

static const char *field_text(const StoredReceipt *r, size_t offset) {
        return *(char *const *) (const void *) ((const char *) r + offset);
}

static uint64_t field_number(const StoredReceipt *r, size_t offset) {
        return *(const uint64_t *) (const void *) ((const char *) r + offset);
}

static const struct ReceiptField *find_field(const char *name) {
        for (size_t i = 0; i < ELEMENTSOF(fields); i++)
                if (streq(fields[i].name, name))
                        return fields + i;
        return NULL;
}

int receipt_append_entries(sd_bus_message *m, const StoredReceipt *receipt) {
        int r = 0;

        for (size_t i = 0; r >= 0 && i < ELEMENTSOF(fields); i++)
                r = fields[i].text ? bus_append_entry_text(m, fields[i].name, field_text(receipt, fields[i].offset)) :
                                     bus_append_entry_u64(m, fields[i].name, field_number(receipt, fields[i].offset));
        return r < 0 ? r : bus_append_entry_text(m, "Outcome", receipt_outcome_to_string(receipt->outcome));
}

int receipt_find(_unused_ sd_bus *bus, const char *path, _unused_ const char *interface, void *userdata, void **ret,
                 _unused_ sd_bus_error *error) {
        const StoredReceipt *receipt;
        BusLink *l = bus_link_of(userdata);
        BusObject o;

        if (!l || bus_object_parse(path, &o) < 0 || o.kind != BUS_OBJECT_RECEIPT || !bus_link_receipt(l, o.number, &receipt) ||
            !bus_link_find(l, receipt->session))
                return 0;
        *ret = bus_link_set_target(l, (BusTarget){.receipt = receipt});
        return 1;
}

static int get_text(_unused_ sd_bus *bus, _unused_ const char *path, _unused_ const char *interface, const char *property,
                    sd_bus_message *reply, void *userdata, _unused_ sd_bus_error *error) {
        const struct ReceiptField *field = find_field(property);
        BusTarget *t = userdata;

        return field ? bus_append_text(reply, field_text(t->receipt, field->offset)) : -ENOENT;
}

static int get_number(_unused_ sd_bus *bus, _unused_ const char *path, _unused_ const char *interface, const char *property,
                      sd_bus_message *reply, void *userdata, _unused_ sd_bus_error *error) {
        const struct ReceiptField *field = find_field(property);
        BusTarget *t = userdata;

        return field ? sd_bus_message_append(reply, "t", field_number(t->receipt, field->offset)) : -ENOENT;
}

static int get_outcome(_unused_ sd_bus *bus, _unused_ const char *path, _unused_ const char *interface, _unused_ const char *property,
                       sd_bus_message *reply, void *userdata, _unused_ sd_bus_error *error) {
        BusTarget *t = userdata;

        return bus_append_text(reply, receipt_outcome_to_string(t->receipt->outcome));
}

/* Nothing of a receipt ever changes. */
const sd_bus_vtable receipt_vtable[] = {
        SD_BUS_VTABLE_START(0),
        SD_BUS_PROPERTY("EndedUSec", "t", get_number, 0, SD_BUS_VTABLE_PROPERTY_CONST),
        SD_BUS_PROPERTY("Session", "s", get_text, 0, SD_BUS_VTABLE_PROPERTY_CONST),
        SD_BUS_PROPERTY("Provider", "s", get_text, 0, SD_BUS_VTABLE_PROPERTY_CONST),
        SD_BUS_PROPERTY("CredentialName", "s", get_text, 0, SD_BUS_VTABLE_PROPERTY_CONST),
        SD_BUS_PROPERTY("Host", "s", get_text, 0, SD_BUS_VTABLE_PROPERTY_CONST),
        SD_BUS_PROPERTY("Method", "s", get_text, 0, SD_BUS_VTABLE_PROPERTY_CONST),
        SD_BUS_PROPERTY("Path", "s", get_text, 0, SD_BUS_VTABLE_PROPERTY_CONST),
        SD_BUS_PROPERTY("QueryLength", "t", get_number, 0, SD_BUS_VTABLE_PROPERTY_CONST),
        SD_BUS_PROPERTY("Status", "t", get_number, 0, SD_BUS_VTABLE_PROPERTY_CONST),
        SD_BUS_PROPERTY("DurationUSec", "t", get_number, 0, SD_BUS_VTABLE_PROPERTY_CONST),
        SD_BUS_PROPERTY("BytesUp", "t", get_number, 0, SD_BUS_VTABLE_PROPERTY_CONST),
        SD_BUS_PROPERTY("BytesDown", "t", get_number, 0, SD_BUS_VTABLE_PROPERTY_CONST),
        SD_BUS_PROPERTY("Outcome", "s", get_outcome, 0, SD_BUS_VTABLE_PROPERTY_CONST),
        SD_BUS_PROPERTY("Unrecorded", "t", get_number, 0, SD_BUS_VTABLE_PROPERTY_CONST),
        SD_BUS_VTABLE_END,
};
