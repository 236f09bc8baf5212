/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Reads messages as the broker's parser does. Standard input: a size of four bytes, little endian, and so many bytes, over and over. Standard
 * output, a line for each: the requests that were read one behind the other on that connection, "METHOD TARGET" with '|' behind each, and how it ended:
 * "end" (nothing is left), "close" (the client wanted no more), "incomplete", or "refused: PHRASE". */
#include <endian.h>
#include <unistd.h>

#include "basic/io.h"
#include "broker/http1.h"

/* The bytes of the body; 0 bytes of it are left when *ret_whole. */
static ssize_t skip_body(const Http1Head *head, const char *data, size_t size, bool *ret_whole) {
        if (head->framing == HTTP1_BODY_CHUNKED) {
                Http1Chunked c = {};
                size_t at = 0;
                while (!c.done && at < size) {
                        Slice piece;
                        ssize_t n = http1_chunked_next(&c, data + at, size - at, &piece);
                        if (n <= 0)
                                return n;
                        at += (size_t) n;
                }
                *ret_whole = c.done;
                return (ssize_t) at;
        }
        uint64_t wanted = head->framing == HTTP1_BODY_LENGTH ? head->content_length : 0;
        *ret_whole = wanted <= size;
        return (ssize_t) MIN(wanted, (uint64_t) size);
}

static const char *read_one(const char **data, size_t *size, bool *ret_close) {
        const char *problem = "the request head is malformed";
        Http1Head head;

        ssize_t n = http1_find_head_end(*data, *size, NULL);
        if (n == 0)
                return "incomplete";
        if (n < 0 || http1_parse_request(*data, (size_t) n, &head, &problem) < 0)
                return problem;
        printf("%.*s %.*s|", (int) head.method.size, head.method.data, (int) head.target.size, head.target.data);
        *data += n;
        *size -= (size_t) n;
        bool whole = false;
        n = skip_body(&head, *data, *size, &whole);
        if (n < 0)
                return "the chunked body is malformed";
        *data += n;
        *size -= (size_t) n;
        *ret_close = !head.keep_alive;
        return whole ? NULL : "incomplete";
}

int main(void) {
        uint32_t length;

        while (read_all(STDIN_FILENO, &length, sizeof(length)) == (ssize_t) sizeof(length)) {
                size_t size = le32toh(length);
                char *message = malloc(size + 1);
                if (!message || read_all(STDIN_FILENO, message, size) != (ssize_t) size)
                        return 1;
                const char *rest = message, *end = NULL;
                bool close = false;
                while (!end && !close && size > 0)
                        end = read_one(&rest, &size, &close);
                if (!end)
                        printf("%s\n", close ? "close" : "end");
                else if (strcmp(end, "incomplete") == 0)
                        printf("incomplete\n");
                else
                        printf("refused: %s\n", end);
                free(message);
        }
        return 0;
}
