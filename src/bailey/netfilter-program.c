/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* bailey-netfilter: the packet filter's rules, from standard input to the kernel, by libnftables. A program of its own, as bailey loads no
 * library. bailey starts it in the network namespace that the rules are for, with CAP_NET_ADMIN there and no other capability, without
 * arguments, environment, or descriptors but the standard ones. What went wrong is one line; the status is 0 only when all rules hold. */

#include <nftables/libnftables.h>
#include <stdlib.h>
#include <unistd.h>

#include "basic/io.h"
#include "basic/program.h"

#define LINE_MAX_SIZE 256U

_noreturn_ static void fail(const char *what, const char *detail) {
        char line[LINE_MAX_SIZE];

        int n = snprintf(line, sizeof(line), "%s%.*s\n", what, (int) strcspn(detail, "\n"), detail);
        if (n > 0)
                (void) write_all(STDOUT_FILENO, line, MIN((size_t) n, sizeof(line) - 1));
        _exit(EXIT_FAILURE);
}

/* Whole, or not at all: rules that were cut might be rules, too. */
static void read_rules(char *ret, size_t size) {
        ssize_t n = read_all(STDIN_FILENO, ret, size);

        if (n < 0)
                fail("the rules cannot be read: ", strerror((int) -n));
        if (n == 0 || (size_t) n == size)
                fail(n == 0 ? "there are no rules" : "there are too many rules", "");
        ret[n] = 0;
        if (strlen(ret) != (size_t) n)
                fail("the rules are not text", "");
}

int main(int argc, _unused_ char *argv[]) {
        static char rules[PROGRAM_INPUT_MAX + 1];

        if (argc > 1)
                fail("it takes no arguments, only rules on its standard input; bailey starts it", "");
        read_rules(rules, sizeof(rules));
        struct nft_ctx *context = nft_ctx_new(NFT_CTX_DEFAULT);
        if (!context || nft_ctx_buffer_error(context) != 0)
                fail("libnftables cannot be used", "");
        if (nft_run_cmd_from_buffer(context, rules) != 0)
                fail("the kernel refused it: ", nft_ctx_get_error_buffer(context));
        /* Without the library's own end, and the sanitizers': what is left goes with the process. */
        _exit(EXIT_SUCCESS);
}
