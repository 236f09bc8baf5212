/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <unistd.h>

#include "basic/text.h"
#include "conversation.h"
#include "shared/bus-object.h"

#define RECORD '\x1e'
#define FIELD "\x1f"

static struct {
        sd_bus *bus;
        char listener[64], state[32];
        uint64_t prompts, subscribed; /* the cookie of the call */
        long long turn, queued;
        char buffer[1 << 20];
        size_t size;
} c;

static int describe(sd_bus_message *m) {
        const char *waiting = strstr(sd_bus_message_get_path(m), "b3") ? "its agent to answer for the first time" : "";

        if (c.turn < 0) /* it is not known yet */
                return sd_bus_reply_method_return(m, "a{sv}", 2, "State", "s", c.state, "Protocol", "s", "acp");
        return sd_bus_reply_method_return(m, "a{sv}", 6, "State", "s", c.state, "Waiting", "s", waiting, "Protocol", "s", strstr(sd_bus_message_get_path(m), "b2") ? "none" : "acp",
                                          "Turn", "t", (uint64_t) c.turn, "QueuedPrompts", "t", (uint64_t) c.queued, "ExitReason", "s", "exited");
}

static int take_prompt(sd_bus_message *m) {
        const char *text;
        int r = sd_bus_message_read(m, "s", &text);

        if (r < 0)
                return r;
        if (startswith(text, "refuse "))
                return sd_bus_reply_method_errorf(m, "org.errand1.Error.LimitReached", "%s", text);
        printf("Prompt %s %s\n", sd_bus_message_get_path(m), text);
        c.prompts++;
        return sd_bus_reply_method_return(m, "t", c.prompts);
}

static int say(sd_bus_message *m) {
        const char *text;
        char reply[512];
        int r = sd_bus_message_read(m, "s", &text);

        if (r < 0)
                return r;
        printf("Say %s %s\n", sd_bus_message_get_path(m), text);
        (void) snprintf(reply, sizeof(reply), "you said:\n%.300s", text);
        return sd_bus_reply_method_return(m, "s", reply);
}

static int on_message(sd_bus_message *m, _unused_ void *userdata, _unused_ sd_bus_error *error) {
        const char *member = sd_bus_message_get_member(m);
        int r = 0;

        if (sd_bus_message_is_method_call(m, BUS_MANAGER_INTERFACE, "Subscribe")) {
                uint64_t cookie = 0;

                /* Comes again when errandd's code had to find out first whose it is. */
                (void) sd_bus_message_get_cookie(m, &cookie);
                if (cookie != c.subscribed || !streq(c.listener, sd_bus_message_get_sender(m)))
                        printf("Subscribe\n");
                (void) snprintf(c.listener, sizeof(c.listener), "%s", sd_bus_message_get_sender(m));
                c.subscribed = cookie;
        } else if (!sd_bus_message_is_method_call(m, BUS_SESSION_INTERFACE, NULL))
                return 0;
        else if (streq(member, "Prompt"))
                r = take_prompt(m);
        else if (streq(member, "Say"))
                r = say(m);
        else if (streq(member, "Describe"))
                r = describe(m);
        else if (streq(member, "Interrupt")) {
                printf("Interrupt %s\n", sd_bus_message_get_path(m));
                r = sd_bus_reply_method_return(m, NULL);
        }
        fflush(stdout);
        return r;
}

/* ---- what it is told ---- */

static int append_fields(sd_bus_message *m, char **rest) {
        int r = sd_bus_message_open_container(m, 'a', "{sv}");
        char *name;

        while (r >= 0 && (name = strsep(rest, FIELD))) {
                const char *type = strsep(rest, FIELD), *value = strsep(rest, FIELD);

                if (*type == 's')
                        r = sd_bus_message_append(m, "{sv}", name, "s", value);
                else if (*type == 't')
                        r = sd_bus_message_append(m, "{sv}", name, "t", (uint64_t) atoll(value));
                else
                        r = sd_bus_message_append(m, "{sv}", name, "b", atoi(value));
        }
        return r < 0 ? r : sd_bus_message_close_container(m);
}

static int emit(const char *word, char **rest) {
        _cleanup_(sd_bus_message_unrefp) sd_bus_message *m = NULL;
        bool update = streq(word, "update"), manager = streq(word, "unsubscribed");
        const char *id = manager ? "" : strsep(rest, FIELD);
        int r = sd_bus_message_new_signal(c.bus, &m, manager ? BUS_ROOT : bus_session_path(id).text, manager ? BUS_MANAGER_INTERFACE : BUS_SESSION_INTERFACE,
                                          update ? "Update" : manager ? "Unsubscribed" : "Exited");

        if (r >= 0 && update)
                r = sd_bus_message_append(m, "s", strsep(rest, FIELD));
        if (r >= 0 && update)
                r = append_fields(m, rest);
        if (r >= 0 && !update && !manager) {
                const char *reason = strsep(rest, FIELD);

                r = sd_bus_message_append(m, "si", reason, atoi(strsep(rest, FIELD)));
        }
        return r < 0 ? r : sd_bus_send_to(c.bus, m, c.listener, NULL);
}

static int obey(char *record) {
        const char *word = strsep(&record, FIELD);

        if (!streq(word, "standing"))
                return emit(word, &record);
        (void) snprintf(c.state, sizeof(c.state), "%s", strsep(&record, FIELD));
        c.turn = atoll(strsep(&record, FIELD));
        c.queued = atoll(strsep(&record, FIELD));
        printf("standing\n");
        return fflush(stdout);
}

static int on_input(sd_event_source *source, int fd, _unused_ uint32_t events, _unused_ void *userdata) {
        const size_t most = sizeof(c.buffer) - 1;
        char *end;

        if (c.size >= most)
                return -ENOBUFS; /* no record is as long */
        ssize_t n = read(fd, c.buffer + c.size, most - c.size);

        if (n <= 0)
                return sd_event_source_set_enabled(source, SD_EVENT_OFF);
        c.size += (size_t) n;
        while ((end = memchr(c.buffer, RECORD, c.size))) {
                *end = 0;
                if (obey(c.buffer) < 0)
                        return -EIO;
                c.size -= (size_t) (end + 1 - c.buffer);
                memmove(c.buffer, end + 1, c.size);
        }
        return 0;
}

int conversation_begin(sd_bus *bus, sd_event *event, const char *standing) {
        int r = sd_bus_add_filter(bus, NULL, on_message, NULL);

        c.bus = bus;
        if (sscanf(standing, "%31s %lld %lld", c.state, &c.turn, &c.queued) != 3)
                return -EINVAL;
        return r < 0 ? r : sd_event_add_io(event, NULL, STDIN_FILENO, 1 /* EPOLLIN */, on_input, NULL);
}
