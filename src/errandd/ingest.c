/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <inttypes.h>
#include <limits.h>
#include <unistd.h>

#include "basic/parse.h"
#include "basic/text.h"
#include "errandd/ingest.h"
#include "shared/json-check.h"
#include "shared/message.h"

#define CHUNK_SIZE (256U * 1024U) /* also what one transaction holds: some 600 records */
#define PAYLOAD_DEPTH_MAX 2U
#define NUMBER_MAX UINT64_C(999999999999999999)
#define TEXT_MAX 1024U /* of a member; a path is 256 bytes before its escapes */

typedef struct Ingest {
        Store *store;
        const char *session;
        const IngestHandler *handler;
        SpoolPosition position;
        uint64_t stored_length; /* position.length as it is in the store */
        IngestReport report;
        bool in_damage; /* the bytes before this were no record either */
        uint64_t first_damage;
} Ingest;

/* Borrows from the parser's tree. */
static int get_text(JsonObject *o, const char *name, char **field) {
        const char *text;

        int r = json_get_string(o, name, &text);
        if (r < 0 || strlen(text) > TEXT_MAX)
                return -EBADMSG;
        *field = (char *) text;
        return 0;
}

static int get_receipt(JsonObject *o, StoredReceipt *r) {
        const struct {
                const char *name;
                char **field;
        } texts[] = {{"session", &r->session}, {"provider", &r->provider}, {"credential", &r->credential},
                     {"host", &r->host},       {"method", &r->method},     {"path", &r->path}};
        const struct {
                const char *name;
                uint64_t *field;
        } numbers[] = {{"ended", &r->ended},       {"query", &r->query}, {"status", &r->status},
                       {"duration", &r->duration}, {"up", &r->up},       {"down", &r->down}};
        const char *outcome;

        for (size_t i = 0; i < ELEMENTSOF(texts); i++)
                if (get_text(o, texts[i].name, texts[i].field) < 0)
                        return -EBADMSG;
        for (size_t i = 0; i < ELEMENTSOF(numbers); i++)
                if (json_get_u64(o, numbers[i].name, NUMBER_MAX, numbers[i].field) < 0)
                        return -EBADMSG;
        if (json_get_u64(o, "tokens", NUMBER_MAX, &r->tokens) == -EINVAL || json_get_u64(o, "unrecorded", NUMBER_MAX, &r->unrecorded) == -EINVAL)
                return -EBADMSG;
        if (json_get_string(o, "outcome", &outcome) < 0)
                return -EBADMSG;
        r->outcome = receipt_outcome_from_string(outcome);
        return r->outcome < 0 ? -EBADMSG : 0;
}

static int take_receipt(Ingest *in, JsonObject *o) {
        StoredReceipt receipt = {};

        int r = get_receipt(o, &receipt);
        if (r < 0)
                return r;
        if (!streq(receipt.session, in->session))
                return -EBADMSG; /* its holder may falsify its own session only */
        r = store_add(in->store, &receipt);
        if (r >= 0)
                in->report.receipts++;
        return r;
}

static int take_grant_use(Ingest *in, JsonObject *o) {
        const char *session, *text;
        uint64_t used, number;

        if (json_get_string(o, "session", &session) < 0 || json_get_string(o, "grant", &text) < 0 ||
            json_get_u64(o, "used", NUMBER_MAX, &used) < 0 || !streq(session, in->session) ||
            parse_u64(text, UINT32_MAX, &number) < 0)
                return -EBADMSG;
        int r = in->handler->grant_used(in->session, (uint32_t) number, used, in->handler->userdata);
        if (r >= 0)
                in->report.grants_used++;
        return r == -EBADMSG ? -EIO : r; /* the handler's trouble is not the record's */
}

/* -EBADMSG: the record is no use; every other error ends the transaction. */
static int take_record(Ingest *in, SpoolKind kind, const char *payload, size_t size) {
        _cleanup_json_parser_ JsonParser *parser = NULL;
        JsonObject *object;

        int r = json_read_object(payload, size, PAYLOAD_DEPTH_MAX, &parser, &object, NULL);
        if (r < 0)
                return r;
        return kind == SPOOL_RECEIPT ? take_receipt(in, object) : take_grant_use(in, object);
}

static void note_damage(Ingest *in, uint64_t offset, size_t size) {
        if (!in->in_damage) {
                if (in->report.damaged == 0)
                        in->first_damage = offset;
                in->report.damaged++;
                in->position.damaged++;
        }
        in->report.skipped += size;
}

/* From one byte on to where a record may begin, be it in the last bytes and cut. */
static size_t skip_to_magic(const uint8_t *data, size_t size) {
        for (size_t i = 1; i < size; i++)
                if (memcmp(data + i, "ERRS", MIN(size - i, (size_t) 4)) == 0)
                        return i;
        return size;
}

/* Takes what is whole in data, and returns how much of it that was. at_end: the file ends with data, and nobody writes on. */
static ssize_t take_records(Ingest *in, const uint8_t *data, size_t size, bool at_end) {
        size_t at = 0;

        while (at < size) {
                const char *payload;
                size_t payload_size;
                SpoolKind kind;

                ssize_t n = spool_decode(data + at, size - at, &kind, &payload, &payload_size);
                if (n == 0 && !at_end)
                        break;
                if (n <= 0) {
                        n = (ssize_t) skip_to_magic(data + at, size - at);
                        note_damage(in, in->position.offset + at, (size_t) n);
                        in->in_damage = true;
                } else {
                        int r = take_record(in, kind, payload, payload_size);
                        in->in_damage = false;
                        if (r == -EBADMSG)
                                note_damage(in, in->position.offset + at, (size_t) n);
                        else if (r < 0)
                                return r;
                }
                at += (size_t) n;
        }
        return (ssize_t) at;
}

static int commit_chunk(Ingest *in, const uint8_t *data, size_t size, bool at_end) {
        int r = store_begin(in->store);
        if (r < 0)
                return r;
        ssize_t n = take_records(in, data, size, at_end);
        r = n < 0 ? (int) n : 0;
        if (n == 0 && in->position.length == in->stored_length) {
                store_rollback(in->store); /* a torn record is waited for without a write each time */
                return 0;
        }
        if (r >= 0) {
                in->position.offset += (size_t) n;
                r = store_set_spool(in->store, in->session, &in->position);
        }
        if (r >= 0)
                r = store_commit(in->store);
        if (r < 0) {
                store_rollback(in->store);
                return r;
        }
        in->stored_length = in->position.length;
        return n > 0;
}

static int set_tampered(Ingest *in) {
        in->position.tampered = true;
        int r = store_begin(in->store);
        if (r >= 0)
                r = store_set_spool(in->store, in->session, &in->position);
        if (r >= 0)
                r = store_commit(in->store);
        if (r < 0)
                store_rollback(in->store);
        return r < 0 ? r : -ESTALE;
}

/* > 0: there may be more. */
static int next_chunk(Ingest *in, int fd, uint8_t *buffer, bool final) {
        IngestReport before = in->report;
        SpoolPosition position = in->position;

        size_t wanted = (size_t) MIN(in->position.length - in->position.offset, (uint64_t) CHUNK_SIZE);
        if (wanted == 0)
                return 0;
        ssize_t n = pread(fd, buffer, wanted, (off_t) in->position.offset);
        if (n < 0)
                return -errno;
        bool at_end = final && in->position.offset + (size_t) n == in->position.length;
        int r = commit_chunk(in, buffer, (size_t) n, at_end);
        if (r < 0) {
                in->report = before; /* it is undone, and will be counted when it is done */
                in->position = position;
        } else if (r == 0)
                in->report.torn = true;
        return r;
}

static void warn(Ingest *in, int error) {
        _cleanup_free_ char *text = NULL;
        int n = -1;

        if (error == -ESTALE)
                n = asprintf(&text,
                             "The receipts spool of session %s became shorter: its holder tampered with it, and nothing more is "
                             "read from it",
                             in->session);
        else if (in->report.damaged > 0)
                n = asprintf(&text,
                             "The receipts spool of session %s is damaged in %" PRIu64 " place(s), the first at byte %" PRIu64
                             ": %" PRIu64 " bytes were skipped",
                             in->session, in->report.damaged, in->first_damage, in->report.skipped);
        if (n < 0)
                text = NULL;
        else
                in->handler->warn(text, in->handler->userdata);
}

int ingest_spool(Store *store, const char *session, int fd, bool final, const IngestHandler *handler, IngestReport *ret) {
        Ingest in = {.store = store, .session = session, .handler = handler};
        _cleanup_free_ uint8_t *buffer = NULL;

        int r = store_get_spool(store, session, &in.position);
        if (r < 0)
                return r;
        if (in.position.tampered) {
                *ret = in.report;
                return -ESTALE; /* told when it was found */
        }
        in.stored_length = in.position.length;
        r = record_watch_length(fd, &in.position.length);
        if (r == -ESTALE)
                r = set_tampered(&in);
        else if (r >= 0 && in.position.length > in.position.offset) {
                buffer = malloc(CHUNK_SIZE);
                r = buffer ? 1 : -ENOMEM;
                while (r > 0)
                        r = next_chunk(&in, fd, buffer, final);
        }
        warn(&in, r);
        *ret = in.report;
        return r;
}
