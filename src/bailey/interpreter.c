/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <elf.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "bailey/interpreter.h"
#include "basic/fd.h"

#define SCRIPT_LINE_MAX 256U /* BINPRM_BUF_SIZE */
#define HEADERS_MAX 64U      /* of an ELF file that are looked at */

/* What it is is known before it is opened: to open a device is to do something. */
static int open_file(int root, const char *path) {
        char place[64];
        struct stat st;

        _cleanup_close_ int there = openat(root, path + 1, O_PATH | O_NOFOLLOW | O_CLOEXEC);
        if (there < 0)
                there = open(path, O_PATH | O_NOFOLLOW | O_CLOEXEC);
        if (there < 0 || fstat(there, &st) < 0)
                return -errno;
        if (!S_ISREG(st.st_mode))
                return -EACCES;
        (void) snprintf(place, sizeof(place), "/proc/self/fd/%d", there);
        int fd = open(place, O_RDONLY | O_NOCTTY | O_CLOEXEC);
        return fd < 0 ? -errno : fd;
}

static int of_script(const char *line, char ret[PATH_MAX]) {
        line += 2;
        line += strspn(line, " \t");
        size_t n = strcspn(line, " \t\n");

        if (n == 0)
                return 0;
        memcpy(ret, line, n);
        ret[n] = 0;
        return 1;
}

static int read_name(int fd, uint64_t offset, uint64_t size, char ret[PATH_MAX]) {
        if (size < 2 || size >= PATH_MAX || offset > INT64_MAX)
                return 0;
        ssize_t n = pread(fd, ret, (size_t) size, (off_t) offset);
        if (n != (ssize_t) size)
                return 0;
        ret[size] = 0;
        return *ret ? 1 : 0;
}

static int of_elf64(int fd, const Elf64_Ehdr *header, char ret[PATH_MAX]) {
        Elf64_Phdr h;

        for (unsigned i = 0; i < MIN((unsigned) header->e_phnum, HEADERS_MAX) && header->e_phentsize == sizeof(h); i++) {
                uint64_t at = header->e_phoff + (uint64_t) i * sizeof(h);
                if (at > INT64_MAX || pread(fd, &h, sizeof(h), (off_t) at) != sizeof(h))
                        return 0;
                if (h.p_type == PT_INTERP)
                        return read_name(fd, h.p_offset, h.p_filesz, ret);
        }
        return 0;
}

static int of_elf32(int fd, const Elf32_Ehdr *header, char ret[PATH_MAX]) {
        Elf32_Phdr h;

        for (unsigned i = 0; i < MIN((unsigned) header->e_phnum, HEADERS_MAX) && header->e_phentsize == sizeof(h); i++) {
                if (pread(fd, &h, sizeof(h), (off_t) (header->e_phoff + (uint64_t) i * sizeof(h))) != sizeof(h))
                        return 0;
                if (h.p_type == PT_INTERP)
                        return read_name(fd, h.p_offset, h.p_filesz, ret);
        }
        return 0;
}

int interpreter_of(int root, const char *path, char ret[PATH_MAX]) {
        union {
                char text[SCRIPT_LINE_MAX + 1];
                Elf64_Ehdr elf64;
                Elf32_Ehdr elf32;
        } head = {};

        _cleanup_close_ int fd = open_file(root, path);
        if (fd < 0)
                return fd;
        if (pread(fd, head.text, SCRIPT_LINE_MAX, 0) < 0)
                return -errno;
        if (head.text[0] == '#' && head.text[1] == '!')
                return of_script(head.text, ret);
        if (memcmp(head.text, ELFMAG, SELFMAG) != 0)
                return 0;
        return head.text[EI_CLASS] == ELFCLASS64 ? of_elf64(fd, &head.elf64, ret) : of_elf32(fd, &head.elf32, ret);
}
