/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "basic/fd.h"
#include "broker/state-file.h"
#include "shared/spool.h"

#define SLOTS 2U
#define PAGE 4096U
#define SLOT_SIZE ((off_t) (PAGE + STATE_TEXT_MAX))
#define FILE_SIZE ((off_t) PAGE + SLOTS * SLOT_SIZE)
#define SEALS (F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL)

static const char magic[8] = "ERRSTAT2";

/* Page 0. */
typedef struct Front {
        char magic[8];
        uint64_t counts[STATE_COUNTS];
} Front;

/* In front of a slot's text; of this machine, for this machine. */
typedef struct SlotHead {
        uint64_t generation; /* from 1; the higher one is newer */
        uint32_t size;
        uint32_t crc; /* CRC-32C of generation, size and text */
} SlotHead;

struct StateFile {
        int fd;
        uint64_t generation;
        unsigned slot; /* the one that holds it */
        uint64_t counts[STATE_COUNTS];
};

static off_t slot_offset(unsigned slot) {
        return (off_t) PAGE + (off_t) slot * SLOT_SIZE;
}

static uint32_t checksum(const SlotHead *h, const char *text) {
        uint32_t parts[4] = {(uint32_t) h->generation, (uint32_t) (h->generation >> 32), h->size, crc32c(text, h->size)};
        return crc32c(parts, sizeof(parts));
}

static int write_at(int fd, const void *data, size_t size, off_t at) {
        const char *p = data;

        while (size > 0) {
                ssize_t n = pwrite(fd, p, size, at);
                if (n < 0 && errno == EINTR)
                        continue;
                if (n <= 0)
                        return n < 0 ? -errno : -EIO;
                p += n;
                size -= (size_t) n;
                at += n;
        }
        return 0;
}

StateFile *state_file_free(StateFile *f) {
        if (!f)
                return NULL;
        safe_close(f->fd);
        return mfree(f);
}

int state_file_new(StateFile **ret) {
        _cleanup_(state_file_freep) StateFile *f = calloc(1, sizeof(StateFile));
        Front front = {};

        if (!f)
                return -ENOMEM;
        f->slot = SLOTS - 1;
        f->fd = memfd_create("errand-broker-state", MFD_CLOEXEC | MFD_ALLOW_SEALING);
        if (f->fd < 0)
                return -errno;
        memcpy(front.magic, magic, sizeof(magic));
        if (ftruncate(f->fd, FILE_SIZE) < 0 || fcntl(f->fd, F_ADD_SEALS, SEALS) < 0)
                return -errno;
        int r = write_at(f->fd, &front, sizeof(front), 0);
        if (r < 0)
                return r;
        *ret = TAKE_PTR(f);
        return 0;
}

/* 1 with the text, 0: there is none that is whole, or a negative errno. */
static int read_slot(int fd, unsigned slot, SlotHead *ret_head, char **ret_text) {
        _cleanup_free_ char *text = NULL;
        SlotHead h;

        if (pread(fd, &h, sizeof(h), slot_offset(slot)) != (ssize_t) sizeof(h))
                return -EIO;
        if (h.generation == 0 || h.size > STATE_TEXT_MAX)
                return 0;
        text = malloc((size_t) h.size + 1);
        if (!text)
                return -ENOMEM;
        if (pread(fd, text, h.size, slot_offset(slot) + (off_t) sizeof(h)) != (ssize_t) h.size)
                return -EIO;
        if (checksum(&h, text) != h.crc)
                return 0;
        text[h.size] = 0;
        *ret_head = h;
        *ret_text = TAKE_PTR(text);
        return 1;
}

static int check_file(int fd, Front *ret, const char **ret_problem) {
        int seals = fcntl(fd, F_GET_SEALS);
        struct stat st;

        if (seals < 0 || (seals & SEALS) != SEALS || fstat(fd, &st) < 0 || st.st_size != FILE_SIZE) {
                *ret_problem = "it is not a memfd of its size, sealed against another one";
                return -EBADMSG;
        }
        if (pread(fd, ret, sizeof(*ret), 0) != (ssize_t) sizeof(*ret) || memcmp(ret->magic, magic, sizeof(magic)) != 0) {
                *ret_problem = "it does not begin as it should";
                return -EBADMSG;
        }
        return 0;
}

int state_file_open(int fd, StateFile **ret, char **ret_text, size_t *ret_size, const char **ret_problem) {
        _cleanup_close_ int taken = fd;
        _cleanup_(state_file_freep) StateFile *f = calloc(1, sizeof(StateFile));
        _cleanup_free_ char *text = NULL;
        size_t size = 0;
        Front front;

        if (!f)
                return -ENOMEM;
        f->fd = TAKE_FD(taken);
        int r = check_file(f->fd, &front, ret_problem);
        if (r < 0)
                return r;
        memcpy(f->counts, front.counts, sizeof(f->counts));
        for (unsigned i = 0; i < SLOTS; i++) {
                _cleanup_free_ char *candidate = NULL;
                SlotHead h = {};
                r = read_slot(f->fd, i, &h, &candidate);
                if (r < 0)
                        return r;
                if (r == 0 || h.generation <= f->generation)
                        continue;
                free(text);
                text = TAKE_PTR(candidate);
                size = h.size;
                f->generation = h.generation;
                f->slot = i;
        }
        if (!text) {
                *ret_problem = "it holds no text that is whole";
                return -EBADMSG;
        }
        *ret_text = TAKE_PTR(text);
        *ret_size = size;
        *ret = TAKE_PTR(f);
        return 0;
}

int state_file_fd(const StateFile *f) {
        return f->fd;
}

int state_file_write(StateFile *f, const char *text, size_t size) {
        static const SlotHead none = {};
        unsigned slot = (f->slot + 1) % SLOTS;
        SlotHead h = {.generation = f->generation + 1};

        if (size > STATE_TEXT_MAX)
                return -E2BIG;
        h.size = (uint32_t) size;
        h.crc = checksum(&h, text);
        int r = write_at(f->fd, &none, sizeof(none), slot_offset(slot));
        if (r >= 0)
                r = write_at(f->fd, text, size, slot_offset(slot) + (off_t) sizeof(h));
        if (r >= 0)
                r = write_at(f->fd, &h, sizeof(h), slot_offset(slot));
        if (r < 0)
                return r;
        f->slot = slot;
        f->generation = h.generation;
        return 0;
}

int state_file_set_count(StateFile *f, size_t index, uint64_t count) {
        int r = write_at(f->fd, &count, sizeof(count), (off_t) (offsetof(Front, counts) + index * sizeof(count)));
        if (r >= 0)
                f->counts[index] = count;
        return r;
}

uint64_t state_file_count(const StateFile *f, size_t index) {
        return f->counts[index];
}
