/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "bailey/audit-risk.h"
#include "basic/path.h"
#include "basic/text.h"

typedef enum Where {
        IN_HOME, /* a path in the home directory, and all below it */
        AT_PATH, /* the same, absolute */
        PREFIX,  /* all that begins so */
        NAMED,   /* the last component, wherever it is */
        PART,    /* somewhere in it */
} Where;

enum {
        ANY = (1 << ACCESS_OPERATIONS) - 1,
        CHANGES = ACCESSED_WRITE | ACCESSED_ENTRY | ACCESSED_BIND,
        CONTENT = ANY & ~ACCESSED_LOOK,
};

typedef struct Risk {
        Where where;
        const char *text;
        unsigned operations;
        bool never; /* and no policy grants it */
        const char *reason;
} Risk;

static const char keys[] = "private keys";
static const char cloud[] = "cloud credentials";
static const char tokens[] = "passwords and tokens";
static const char vault[] = "a password manager's store";
static const char browser[] = "a browser's or mail program's profile: passwords, cookies, history";
static const char startup[] = "run by the next shell or session";
static const char autostart[] = "started without being asked for";
static const char typed[] = "what was typed before";
static const char wallet[] = "a wallet";
static const char daemons[] = "a socket that commands the system or the session";
static const char kernel[] = "the kernel's own; made anew inside";
static const char hardware[] = "hardware with the whole machine behind it";
static const char everybody[] = "part of the system, for all of its accounts";
static const char hooks[] = "run by git outside";

static const Risk risks[] = {
        {IN_HOME, ".ssh", ANY, false, keys},
        {IN_HOME, ".gnupg", ANY, false, keys},
        {IN_HOME, ".pki", ANY, false, keys},
        {NAMED, "id_rsa", ANY, false, keys},
        {NAMED, "id_ecdsa", ANY, false, keys},
        {NAMED, "id_ed25519", ANY, false, keys},
        {AT_PATH, "/etc/ssh", CHANGES, false, keys},
        {IN_HOME, ".aws", ANY, false, cloud},
        {IN_HOME, ".azure", ANY, false, cloud},
        {IN_HOME, ".config/gcloud", ANY, false, cloud},
        {IN_HOME, ".config/doctl", ANY, false, cloud},
        {IN_HOME, ".kube", ANY, false, cloud},
        {IN_HOME, ".oci", ANY, false, cloud},
        {IN_HOME, ".terraform.d", ANY, false, cloud},
        {IN_HOME, ".docker", ANY, false, cloud},
        {IN_HOME, ".config/rclone", ANY, false, cloud},
        {PREFIX, "169.254.169.254:", ANY, false, cloud},
        {PREFIX, "[fd00:ec2::254]:", ANY, false, cloud},
        {IN_HOME, ".netrc", ANY, false, tokens},
        {IN_HOME, ".git-credentials", ANY, false, tokens},
        {IN_HOME, ".config/git/credentials", ANY, false, tokens},
        {IN_HOME, ".config/gh", ANY, false, tokens},
        {IN_HOME, ".config/hub", ANY, false, tokens},
        {IN_HOME, ".npmrc", ANY, false, tokens},
        {IN_HOME, ".pypirc", ANY, false, tokens},
        {IN_HOME, ".cargo/credentials", ANY, false, tokens},
        {IN_HOME, ".cargo/credentials.toml", ANY, false, tokens},
        {IN_HOME, ".gem/credentials", ANY, false, tokens},
        {IN_HOME, ".m2/settings.xml", ANY, false, tokens},
        {IN_HOME, ".pgpass", ANY, false, tokens},
        {IN_HOME, ".my.cnf", ANY, false, tokens},
        {NAMED, ".env", CONTENT, false, tokens},
        {AT_PATH, "/etc/shadow", ANY, true, tokens},
        {AT_PATH, "/etc/gshadow", ANY, true, tokens},
        {AT_PATH, "/etc/sudoers", ANY, false, everybody},
        {AT_PATH, "/etc/sudoers.d", ANY, false, everybody},
        {IN_HOME, ".password-store", ANY, false, vault},
        {IN_HOME, ".local/share/keyrings", ANY, false, vault},
        {IN_HOME, ".local/share/kwalletd", ANY, false, vault},
        {IN_HOME, ".config/keepassxc", ANY, false, vault},
        {IN_HOME, ".config/Bitwarden", ANY, false, vault},
        {IN_HOME, ".config/1Password", ANY, false, vault},
        {IN_HOME, ".mozilla", ANY, false, browser},
        {IN_HOME, ".thunderbird", ANY, false, browser},
        {IN_HOME, ".config/google-chrome", ANY, false, browser},
        {IN_HOME, ".config/chromium", ANY, false, browser},
        {IN_HOME, ".config/BraveSoftware", ANY, false, browser},
        {IN_HOME, ".config/microsoft-edge", ANY, false, browser},
        {IN_HOME, ".config/vivaldi", ANY, false, browser},
        {IN_HOME, ".config/opera", ANY, false, browser},
        {IN_HOME, "snap/firefox", ANY, false, browser},
        {IN_HOME, ".bitcoin", ANY, false, wallet},
        {IN_HOME, ".ethereum", ANY, false, wallet},
        {IN_HOME, ".electrum", ANY, false, wallet},
        {IN_HOME, ".bash_history", ANY, false, typed},
        {IN_HOME, ".zsh_history", ANY, false, typed},
        {IN_HOME, ".python_history", ANY, false, typed},
        {IN_HOME, ".local/share/fish", ANY, false, typed},
        {IN_HOME, ".bashrc", CHANGES, false, startup},
        {IN_HOME, ".bash_profile", CHANGES, false, startup},
        {IN_HOME, ".bash_login", CHANGES, false, startup},
        {IN_HOME, ".bash_logout", CHANGES, false, startup},
        {IN_HOME, ".bash_aliases", CHANGES, false, startup},
        {IN_HOME, ".profile", CHANGES, false, startup},
        {IN_HOME, ".zshrc", CHANGES, false, startup},
        {IN_HOME, ".zshenv", CHANGES, false, startup},
        {IN_HOME, ".zprofile", CHANGES, false, startup},
        {IN_HOME, ".zlogin", CHANGES, false, startup},
        {IN_HOME, ".inputrc", CHANGES, false, startup},
        {IN_HOME, ".config/fish", CHANGES, false, startup},
        {IN_HOME, ".config/environment.d", CHANGES, false, startup},
        {IN_HOME, ".pam_environment", CHANGES, false, startup},
        {IN_HOME, ".xprofile", CHANGES, false, startup},
        {IN_HOME, ".xinitrc", CHANGES, false, startup},
        {IN_HOME, ".xsessionrc", CHANGES, false, startup},
        {IN_HOME, ".config/autostart", CHANGES, false, autostart},
        {IN_HOME, ".config/systemd", CHANGES, false, autostart},
        {IN_HOME, ".local/share/systemd", CHANGES, false, autostart},
        {IN_HOME, ".local/share/dbus-1", CHANGES, false, autostart},
        {IN_HOME, ".local/share/applications", CHANGES, false, autostart},
        {IN_HOME, ".config/plasma-workspace", CHANGES, false, autostart},
        {AT_PATH, "/var/spool/cron", ANY, false, autostart},
        {IN_HOME, "bin", CHANGES, false, "run by its name the next time"},
        {IN_HOME, ".local/bin", CHANGES, false, "run by its name the next time"},
        {IN_HOME, ".gitconfig", CHANGES, false, hooks},
        {IN_HOME, ".config/git", CHANGES, false, hooks},
        {PART, "/.git/hooks/", CHANGES, false, hooks},
        {IN_HOME, ".vimrc", CHANGES, false, "run by the editor"},
        {IN_HOME, ".config/nvim", CHANGES, false, "run by the editor"},
        {IN_HOME, ".emacs.d", CHANGES, false, "run by the editor"},
        {IN_HOME, ".config/bailey", CHANGES, true, "bailey's own configuration"},

        {AT_PATH, "/run/dbus", ANY, true, daemons},
        {AT_PATH, "/run/systemd", ANY, true, daemons},
        {AT_PATH, "/run/user", ANY, true, daemons},
        {PREFIX, "/run/errand", ANY, true, daemons},
        {AT_PATH, "/run/docker", ANY, true, daemons},
        {AT_PATH, "/run/docker.sock", ANY, true, daemons},
        {AT_PATH, "/run/podman", ANY, true, daemons},
        {AT_PATH, "/run/incus", ANY, true, daemons},
        {AT_PATH, "/run/lxd", ANY, true, daemons},
        {AT_PATH, "/run/containerd", ANY, true, daemons},
        {AT_PATH, "/run/crio", ANY, true, daemons},
        {AT_PATH, "/run/libvirt", ANY, true, daemons},
        {AT_PATH, "/run/snapd.socket", ANY, true, daemons},
        {AT_PATH, "/var/lib/incus", ANY, false, daemons},
        {AT_PATH, "/var/lib/lxd", ANY, false, daemons},
        {AT_PATH, "/var/run", ANY, true, daemons},
        {AT_PATH, "/tmp/.X11-unix", ANY, false, "an X11 display: every window and every key"},
        {AT_PATH, "/proc", CHANGES, true, kernel},
        {AT_PATH, "/sys", CHANGES, true, kernel},
        {AT_PATH, "/dev", ACCESSED_ENTRY | ACCESSED_BIND, true, kernel},
        {AT_PATH, "/dev/mem", ANY, false, hardware},
        {AT_PATH, "/dev/kmem", ANY, false, hardware},
        {AT_PATH, "/dev/port", ANY, false, hardware},
        {AT_PATH, "/dev/input", ANY, false, "every key that is pressed"},
        {AT_PATH, "/dev/uinput", ANY, false, "keys pressed in others' name"},
        {PREFIX, "/dev/sd", ANY, true, hardware},
        {PREFIX, "/dev/nvme", ANY, true, hardware},
        {PREFIX, "/dev/dm-", ANY, true, hardware},
        {AT_PATH, "/dev/mapper", ANY, true, hardware},
        {AT_PATH, "/boot", ANY, false, everybody},
        {AT_PATH, "/root", ANY, false, "another account's home"},
        {AT_PATH, "/etc", CHANGES, false, everybody},
        {AT_PATH, "/usr", CHANGES, false, everybody},
        {AT_PATH, "/bin", CHANGES, false, everybody},
        {AT_PATH, "/sbin", CHANGES, false, everybody},
        {AT_PATH, "/lib", CHANGES, false, everybody},
};

static bool matches(const Risk *r, const Access *a, const char *home) {
        size_t n = strlen(home);
        const char *slash = strrchr(a->name, '/');

        if (!(r->operations & a->operations))
                return false;
        switch (r->where) {
        case IN_HOME:
                return a->kind == ACCESS_PATH && n > 1 && strncmp(a->name, home, n) == 0 && a->name[n] == '/' &&
                       path_beneath(a->name + n + 1, r->text);
        case AT_PATH:
                return a->kind == ACCESS_PATH && path_beneath(a->name, r->text);
        case PREFIX:
                return a->kind != ACCESS_ABSTRACT && startswith(a->name, r->text);
        case NAMED:
                return a->kind == ACCESS_PATH && slash && streq(slash + 1, r->text);
        case PART:
        default:
                return a->kind == ACCESS_PATH && strstr(a->name, r->text);
        }
}

/* A grant of the home directory or of what holds it is a grant of everything above. */
static bool holds_home(const Access *a, const char *home) {
        return a->kind == ACCESS_PATH && (a->operations & ~(unsigned) ACCESSED_LOOK) && path_beneath(home, a->name);
}

const char *access_risk(const Access *a, const char *home, bool *ret_never) {
        const char *reason = NULL;
        bool never = false;

        for (size_t i = 0; i < ELEMENTSOF(risks) && !reason; i++)
                if (matches(&risks[i], a, home)) {
                        reason = risks[i].reason;
                        never = risks[i].never;
                }
        if (!reason && holds_home(a, home))
                reason = "the home directory, and everything in it";
        if (!reason && a->kind == ACCESS_PATH && (a->operations & ACCESSED_CONNECT))
                reason = "a socket of a program outside";
        if (!reason && a->kind == ACCESS_ABSTRACT) {
                reason = "an abstract socket of a program outside";
                never = true;
        }
        if (ret_never)
                *ret_never = never;
        return reason;
}
