/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "basic/parse.h"
#include "basic/text.h"
#include "broker/http1.h"

#define METHOD_MAX 32U
/* Bytes and options of all Connection fields together; honest ones have three options. Each of up to 128 fields is compared with each. */
#define CONNECTION_MAX 1024U
#define CONNECTION_OPTIONS_MAX 32U

/* tchar of RFC 9110, section 5.6.2 */
static bool is_token_char(unsigned char c) {
        static const bool table[256] = {
                ['!'] = 1, ['#'] = 1, ['$'] = 1, ['%'] = 1, ['&'] = 1, ['\''] = 1, ['*'] = 1, ['+'] = 1, ['-'] = 1, ['.'] = 1,
                ['^'] = 1, ['_'] = 1, ['`'] = 1, ['|'] = 1, ['~'] = 1, ['0' ... '9'] = 1, ['A' ... 'Z'] = 1, ['a' ... 'z'] = 1,
        };
        return table[c];
}

/* HTAB, SP, VCHAR and obs-text: what a field value or a reason phrase may hold */
static bool is_text_char(unsigned char c) {
        return (c >= 0x20 && c != 0x7f) || c == '\t';
}

static size_t token_length(Slice s) {
        size_t n = 0;
        while (n < s.size && is_token_char((unsigned char) s.data[n]))
                n++;
        return n;
}

static bool is_token(Slice s) {
        return s.size > 0 && token_length(s) == s.size;
}

static bool is_text(Slice s) {
        for (size_t i = 0; i < s.size; i++)
                if (!is_text_char((unsigned char) s.data[i]))
                        return false;
        return true;
}

Slice slice_trim(Slice s) {
        while (s.size > 0 && (*s.data == ' ' || *s.data == '\t'))
                s = (Slice){s.data + 1, s.size - 1};
        while (s.size > 0 && (s.data[s.size - 1] == ' ' || s.data[s.size - 1] == '\t'))
                s.size--;
        return s;
}

/* name is in lower case. The sizes differ mostly, so they are looked at first. */
static bool is_named(Slice s, const char *name, size_t size) {
        if (s.size != size)
                return false;
        for (size_t i = 0; i < size; i++)
                if (ascii_lower(s.data[i]) != name[i])
                        return false;
        return true;
}
#define IS_NAMED(s, name) is_named(s, name, STRLEN(name))

static int malformed(const char **ret_problem, const char *problem) {
        if (ret_problem)
                *ret_problem = problem;
        return -EBADMSG;
}

static int too_large(const char **ret_problem, const char *problem) {
        if (ret_problem)
                *ret_problem = problem;
        return -EMSGSIZE;
}

ssize_t http1_find_head_end(const char *data, size_t size, size_t *scanned) {
        size_t limit = MIN(size, (size_t) HTTP1_HEAD_MAX), i = scanned ? MIN(*scanned, limit) : 0;

        /* Neither a request nor an answer begins so; do not wait for the rest of a TLS hello. */
        if (size > 0 && !is_token_char((unsigned char) data[0]))
                return -EBADMSG;
        while (i < limit) {
                const char *lf = memchr(data + i, '\n', limit - i);
                if (!lf)
                        break;
                i = (size_t) (lf - data) + 1;
                if (lf[-1] != '\r')
                        return -EBADMSG;
                /* The line before ended in CR LF too, so this one is empty. */
                if (i > 2 && lf[-2] == '\n')
                        return (ssize_t) i;
                if (scanned)
                        *scanned = i;
        }
        if (scanned)
                *scanned = limit;
        return limit == HTTP1_HEAD_MAX ? -EMSGSIZE : 0;
}

/* Takes one line with its CR LF off *rest. */
static int take_line(Slice *rest, Slice *ret, const char **ret_problem) {
        const char *lf = rest->size > 0 ? memchr(rest->data, '\n', rest->size) : NULL;

        if (!lf)
                return malformed(ret_problem, "the message head does not end");
        size_t n = (size_t) (lf - rest->data);
        if (n == 0 || lf[-1] != '\r')
                return malformed(ret_problem, "a line of the message head does not end in CR LF");
        *ret = (Slice){rest->data, n - 1};
        *rest = (Slice){lf + 1, rest->size - n - 1};
        return 0;
}

static int parse_version(Slice s, unsigned *ret) {
        if (slice_is(s, "HTTP/1.1"))
                *ret = 1;
        else if (slice_is(s, "HTTP/1.0"))
                *ret = 0;
        else
                return -EBADMSG;
        return 0;
}

static int parse_request_line(Http1Head *h, Slice line, const char **ret_problem) {
        const char *space = memchr(line.data, ' ', line.size);
        if (!space)
                return malformed(ret_problem, "the request line is malformed");
        h->method = (Slice){line.data, (size_t) (space - line.data)};
        if (!is_token(h->method) || h->method.size > METHOD_MAX)
                return malformed(ret_problem, "the request method is malformed");

        Slice rest = {space + 1, line.size - h->method.size - 1};
        space = memchr(rest.data, ' ', rest.size);
        if (!space || space == rest.data)
                return malformed(ret_problem, "the request line is malformed");
        h->target = (Slice){rest.data, (size_t) (space - rest.data)};
        for (size_t i = 0; i < h->target.size; i++)
                if (h->target.data[i] <= 0x20 || h->target.data[i] >= 0x7f)
                        return malformed(ret_problem, "the request target holds a byte that is not visible ASCII");
        if (parse_version((Slice){space + 1, rest.size - h->target.size - 1}, &h->minor) < 0)
                return malformed(ret_problem, "the request line does not end in HTTP/1.1 or HTTP/1.0");
        return 0;
}

/* "HTTP/1.1 200 OK"; the second space is there even when the phrase is empty (RFC 9112, section 4). */
static int parse_status_line(Http1Head *h, Slice line, const char **ret_problem) {
        uint64_t status;

        if (line.size < STRLEN("HTTP/1.1 200 ") || line.data[8] != ' ' || line.data[12] != ' ' ||
            parse_version((Slice){line.data, 8}, &h->minor) < 0 || parse_u64_n(line.data + 9, 3, 599, &status) < 0 || status < 100)
                return malformed(ret_problem, "the status line is malformed");
        h->status = (unsigned) status;
        h->reason = (Slice){line.data + 13, line.size - 13};
        if (!is_text(h->reason))
                return malformed(ret_problem, "the reason phrase holds a control character");
        return 0;
}

static int parse_field(Http1Head *h, Slice line, const char **ret_problem) {
        if (*line.data == ' ' || *line.data == '\t')
                return malformed(ret_problem, "a header line begins with white space");
        if (h->n_fields == HTTP1_FIELDS_MAX)
                return too_large(ret_problem, "the message has too many header lines");

        size_t n = token_length(line);
        if (n == 0 || n == line.size || line.data[n] != ':')
                return malformed(ret_problem, "a header name is malformed");
        /* Gateways that put headers into variables read "Content_Length" as "Content-Length". */
        if (!h->is_response && memchr(line.data, '_', n))
                return malformed(ret_problem, "a header name holds an underscore");

        Slice value = slice_trim((Slice){line.data + n + 1, line.size - n - 1});
        if (!is_text(value))
                return malformed(ret_problem, "a header value holds a control character");
        h->fields[h->n_fields++] = (Http1Field){.name = {line.data, n}, .value = value};
        return 0;
}

static int parse_fields(Http1Head *h, Slice rest, const char **ret_problem) {
        for (;;) {
                Slice line;
                int r = take_line(&rest, &line, ret_problem);
                if (r < 0)
                        return r;
                if (line.size == 0)
                        return rest.size == 0 ? 0 : malformed(ret_problem, "the message head goes on after its empty line");
                r = parse_field(h, line, ret_problem);
                if (r < 0)
                        return r;
        }
}

/* Takes one element off a comma-separated list; empty ones are skipped (RFC 9110, section 5.6.1). */
static bool next_element(Slice *list, Slice *ret) {
        while (list->size > 0) {
                const char *comma = memchr(list->data, ',', list->size);
                size_t n = comma ? (size_t) (comma - list->data) : list->size, skip = comma ? n + 1 : n;

                *ret = slice_trim((Slice){list->data, n});
                *list = (Slice){list->data + skip, list->size - skip};
                if (ret->size > 0)
                        return true;
        }
        return false;
}

/* Connection, and with it how long the connection lives. */
static int parse_connection(Http1Head *h, const char **ret_problem) {
        bool close = false, keep = false;
        size_t total = 0, options = 0;

        for (size_t i = 0; i < h->n_fields; i++) {
                if (!IS_NAMED(h->fields[i].name, "connection"))
                        continue;
                Slice list = h->fields[i].value, option;
                total += list.size;
                if (total > CONNECTION_MAX)
                        return too_large(ret_problem, "the Connection header is too long");
                while (next_element(&list, &option)) {
                        if (++options > CONNECTION_OPTIONS_MAX)
                                return too_large(ret_problem, "the Connection header has too many options");
                        if (!is_token(option))
                                return malformed(ret_problem, "the Connection header is malformed");
                        close = close || IS_NAMED(option, "close");
                        keep = keep || IS_NAMED(option, "keep-alive");
                }
        }
        h->keep_alive = !close && (keep || h->minor == 1);
        return 0;
}

static int parse_content_length(Http1Head *h, Slice value, const char **ret_problem) {
        if ((value.size > 1 && *value.data == '0') || parse_u64_n(value.data, value.size, INT64_MAX, &h->content_length) < 0)
                return malformed(ret_problem, "the Content-Length header is malformed");
        h->has_content_length = true;
        return 0;
}

static bool status_has_no_body(unsigned status) {
        return status < 200 || status == 204 || status == 304;
}

/* RFC 9112, section 6.3, without its leniencies */
static int parse_framing(Http1Head *h, const char **ret_problem) {
        const Http1Field *coding = http1_find(h, "transfer-encoding"), *length = http1_find(h, "content-length");

        if (http1_count(h, "transfer-encoding") > 1)
                return malformed(ret_problem, "the message has more than one Transfer-Encoding header");
        if (http1_count(h, "content-length") > 1)
                return malformed(ret_problem, "the message has more than one Content-Length header");
        if (coding && length)
                return malformed(ret_problem, "the message has both Content-Length and Transfer-Encoding");
        if (coding && h->minor == 0)
                return malformed(ret_problem, "the message is HTTP/1.0 and has a Transfer-Encoding header");
        if (coding && !IS_NAMED(coding->value, "chunked"))
                return malformed(ret_problem, "the transfer coding is not exactly \"chunked\"");
        if (length) {
                int r = parse_content_length(h, length->value, ret_problem);
                if (r < 0)
                        return r;
        }
        /* A reader that believes the header waits for a body that the status forbids. A 304 speaks of the body it spared. */
        if (h->is_response && status_has_no_body(h->status) && h->status != 304 && (coding || h->content_length > 0))
                return malformed(ret_problem, "the answer announces a body that its status forbids");

        if (h->is_response && status_has_no_body(h->status))
                h->framing = HTTP1_BODY_NONE;
        else if (coding)
                h->framing = HTTP1_BODY_CHUNKED;
        else if (length)
                h->framing = HTTP1_BODY_LENGTH;
        else
                h->framing = h->is_response ? HTTP1_BODY_CLOSE : HTTP1_BODY_NONE;
        return 0;
}

static int check_request(Http1Head *h, const char **ret_problem) {
        const Http1Field *expect = http1_find(h, "expect");
        size_t hosts = http1_count(h, "host");

        if (hosts > 1)
                return malformed(ret_problem, "the request has more than one Host header");
        if (hosts == 0 && h->minor == 1)
                return malformed(ret_problem, "the request has no Host header");
        if (expect && (http1_count(h, "expect") > 1 || !IS_NAMED(expect->value, "100-continue")))
                return malformed(ret_problem, "the request expects something other than 100-continue");
        /* RFC 9110, section 10.1.1: ignored from an HTTP/1.0 client */
        h->expect_continue = expect && h->minor == 1;
        return 0;
}

static int parse_head(const char *data, size_t size, bool is_response, Http1Head *ret, const char **ret_problem) {
        Slice rest = {data, size}, line;
        Http1Head *h = ret;

        /* The fields are 4 KiB: only what counts is cleared. */
        memset(h, 0, offsetof(Http1Head, fields));
        memset((char *) h + offsetof(Http1Head, n_fields), 0, sizeof(*h) - offsetof(Http1Head, n_fields));
        h->is_response = is_response;

        if (size > HTTP1_HEAD_MAX)
                return too_large(ret_problem, "the message head is too large");
        int r = take_line(&rest, &line, ret_problem);
        if (r >= 0)
                r = is_response ? parse_status_line(h, line, ret_problem) : parse_request_line(h, line, ret_problem);
        if (r >= 0)
                r = parse_fields(h, rest, ret_problem);
        if (r >= 0)
                r = parse_connection(h, ret_problem);
        if (r >= 0)
                r = parse_framing(h, ret_problem);
        if (r >= 0 && !is_response)
                r = check_request(h, ret_problem);
        h->has_upgrade = http1_count(h, "upgrade") > 0;
        return r;
}

int http1_parse_request(const char *data, size_t size, Http1Head *ret, const char **ret_problem) {
        return parse_head(data, size, false, ret, ret_problem);
}

int http1_parse_response(const char *data, size_t size, Http1Head *ret, const char **ret_problem) {
        return parse_head(data, size, true, ret, ret_problem);
}

Http1Framing http1_response_framing(const Http1Head *head, bool request_was_head) {
        return request_was_head || status_has_no_body(head->status) ? HTTP1_BODY_NONE : head->framing;
}

const Http1Field *http1_find(const Http1Head *head, const char *name) {
        size_t size = strlen(name);

        for (size_t i = 0; i < head->n_fields; i++)
                if (head->fields[i].name.size == size && ascii_case_equal(head->fields[i].name.data, size, name))
                        return &head->fields[i];
        return NULL;
}

size_t http1_count(const Http1Head *head, const char *name) {
        size_t size = strlen(name), n = 0;

        for (size_t i = 0; i < head->n_fields; i++)
                n += head->fields[i].name.size == size && ascii_case_equal(head->fields[i].name.data, size, name);
        return n;
}

static bool slice_case_equal(Slice a, Slice b) {
        if (a.size != b.size)
                return false;
        for (size_t i = 0; i < a.size; i++)
                if (ascii_lower(a.data[i]) != ascii_lower(b.data[i]))
                        return false;
        return true;
}

static bool is_nominated(const Http1Head *head, Slice name) {
        for (size_t i = 0; i < head->n_fields; i++) {
                if (!IS_NAMED(head->fields[i].name, "connection"))
                        continue;
                Slice list = head->fields[i].value, option;
                while (next_element(&list, &option))
                        if (slice_case_equal(option, name))
                                return true;
        }
        return false;
}

bool http1_is_hop_by_hop(const Http1Head *head, const Http1Field *field) {
        Slice name = field->name;

        if (name.size > STRLEN("proxy-") && IS_NAMED(((Slice){name.data, STRLEN("proxy-")}), "proxy-"))
                return true;
        if (IS_NAMED(name, "connection") || IS_NAMED(name, "keep-alive") || IS_NAMED(name, "te") || IS_NAMED(name, "trailer") ||
            IS_NAMED(name, "transfer-encoding") || IS_NAMED(name, "upgrade"))
                return true;
        return is_nominated(head, field->name);
}
