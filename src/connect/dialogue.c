/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <sys/socket.h>
#include <unistd.h>

#include "basic/parse.h"
#include "basic/text.h"
#include "connect/dialogue.h"

void proxy_answer_done(ProxyAnswer *a) {
        a->text = mfree(a->text);
        a->early = mfree(a->early);
}

/* The broker has the last word on what is a host; here nothing passes that could end a line or a field. */
int authority_format(const char *host, const char *port, char *buffer) {
        static const char name[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.", v6[] = "abcdefABCDEF0123456789:.";
        bool colon = strchr(host, ':');
        uint16_t number;

        if (!*host || strlen(host) > 253 || host[strspn(host, colon ? v6 : name)] != 0 || parse_port(port, &number) < 0)
                return -EINVAL;
        (void) snprintf(buffer, AUTHORITY_MAX + 1, colon ? "[%s]:%u" : "%s:%u", host, number);
        return 0;
}

/* The value of a Content-Length line, else 0: a refusal without one has its reason phrase. */
static uint64_t body_size(const char *lines, const char *end) {
        static const char name[] = "content-length:";
        uint64_t n = 0;

        for (const char *line = lines; line < end;) {
                const char *lf = memchr(line, '\n', (size_t) (end - line)) ?: end;
                if ((size_t) (lf - line) > STRLEN("content-length:") && ascii_case_equal(line, STRLEN("content-length:"), name)) {
                        const char *value = line + STRLEN("content-length:"), *stop = lf;
                        while (value < stop && (*value == ' ' || *value == '\t'))
                                value++;
                        while (stop > value && (stop[-1] == '\r' || stop[-1] == ' ' || stop[-1] == '\t'))
                                stop--;
                        if (parse_u64_n(value, (size_t) (stop - value), UINT32_MAX, &n) < 0)
                                n = 0;
                }
                line = lf + 1;
        }
        return n;
}

ssize_t answer_parse_head(const char *data, size_t size, unsigned *ret_status, uint64_t *ret_body_size) {
        static const char version[] = "HTTP/1.";
        uint64_t status;

        if (memcmp(data, version, MIN(size, STRLEN("HTTP/1."))) != 0)
                return -EBADMSG;
        const char *end = memmem(data, MIN(size, (size_t) ANSWER_HEAD_MAX), "\r\n\r\n", 4);
        if (!end)
                return size >= ANSWER_HEAD_MAX ? -EMSGSIZE : 0;
        /* "HTTP/1.1 200" and then a space or the line's end */
        size_t line = (size_t) ((const char *) memchr(data, '\r', (size_t) (end - data) + 1) - data);
        if (line < 12 || data[8] != ' ' || (line > 12 && data[12] != ' ') || parse_u64_n(data + 9, 3, 999, &status) < 0)
                return -EBADMSG;
        *ret_status = (unsigned) status;
        *ret_body_size = body_size(data + line + 2, end + 2);
        return end + 4 - data;
}

static int send_request(int fd, const ProxyUrl *proxy, const char *authority) {
        char *request;

        int n = asprintf(&request, "CONNECT %s HTTP/1.1\r\nHost: %s\r\n%s%s%s\r\n", authority, authority,
                         proxy->basic ? "Proxy-Authorization: Basic " : "", proxy->basic ? secret_data(proxy->basic) : "",
                         proxy->basic ? "\r\n" : "");
        if (n < 0)
                return -ENOMEM;
        int r = 0;
        for (ssize_t at = 0, m; at < n && r >= 0; at += MAX(m, (ssize_t) 0)) {
                m = send(fd, request + at, (size_t) (n - at), MSG_NOSIGNAL);
                if (m < 0 && errno != EINTR)
                        r = -errno;
        }
        secret_wipe(request, (size_t) n);
        free(request);
        return r;
}

static int receive_some(int fd, char *buffer, size_t size, size_t *at) {
        ssize_t n;

        do
                n = recv(fd, buffer + *at, size - *at, 0);
        while (n < 0 && errno == EINTR);
        if (n < 0)
                return -errno;
        *at += (size_t) n;
        buffer[*at] = 0;
        return n > 0;
}

/* The first line of what the proxy says, or of its head when it says nothing more. */
static char *refusal_text(const char *head, const char *body, size_t body_bytes) {
        size_t n = body_bytes > 0 ? strcspn(body, "\r\n") : 0;
        _cleanup_free_ char *line = n > 0 ? strndup(body, n) : strndup(head + 9, strcspn(head + 9, "\r\n"));
        return line ? string_escape_control(line) : NULL;
}

int dialogue_hold(int fd, const ProxyUrl *proxy, const char *authority, ProxyAnswer *ret) {
        _cleanup_free_ char *buffer = malloc(ANSWER_HEAD_MAX + ANSWER_BODY_MAX + 1);
        ProxyAnswer answer = {};
        uint64_t body = 0;
        size_t size = 0;
        ssize_t head = 0;

        if (!buffer)
                return -ENOMEM;
        int r = send_request(fd, proxy, authority);
        while (r >= 0 && head == 0) {
                r = receive_some(fd, buffer, ANSWER_HEAD_MAX, &size);
                if (r == 0)
                        return -ENODATA;
                if (r > 0)
                        head = answer_parse_head(buffer, size, &answer.status, &body);
        }
        if (r < 0 || head < 0)
                return r < 0 ? r : (int) head;

        const char *rest = buffer + head;
        bool opened = answer.status >= 200 && answer.status < 300;
        while (!opened && size - (size_t) head < MIN(body, (uint64_t) ANSWER_BODY_MAX))
                if (receive_some(fd, buffer, ANSWER_HEAD_MAX + ANSWER_BODY_MAX, &size) <= 0)
                        break; /* what came of the sentence is better than none */
        answer.early_size = opened ? size - (size_t) head : 0;
        if (opened) {
                answer.early = malloc(MAX(answer.early_size, (size_t) 1));
                if (answer.early)
                        memcpy(answer.early, rest, answer.early_size);
        } else
                answer.text = refusal_text(buffer, rest, size - (size_t) head);
        if (opened ? !answer.early : !answer.text)
                return -ENOMEM;
        *ret = answer;
        return 0;
}
