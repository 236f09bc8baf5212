# SPDX-License-Identifier: LGPL-2.1-or-later
# fish completion for errand. Verbs and options are compared with the program's own table by a test. What is asked of errandd is asked of one that
# runs; none is started.

# Its words are the verb, and for a group the two.
function __errand_verb
    set -l words (commandline -opc)
    set -l verb $words[2]
    if contains -- "$verb" session threads config
        set verb (string trim "$verb $words[3]")
    end
    test "$verb" = "$argv"
end

# How many operands stand before the cursor; the values of options are taken for some, which does no harm.
function __errand_operands
    set -l words (commandline -opc)
    set -l n (count (string match -v -- '-*' $words[2..]))
    if contains -- "$words[2]" session threads config
        set n (math $n - 1)
    end
    test (math $n - 1) -eq $argv[1]
end

function __errand_sessions
    errand threads list --json --no-start 2>/dev/null | string replace -a '{' '\n' | string split '\n' | string replace -rf '.*"id":"([a-z0-9]*)".*"state":"([a-z]*)".*' '$1\t$2'
end

function __errand_projects
    if contains -- --system (commandline -opc)
        errand threads list --json --no-start --system 2>/dev/null | string replace -a '{' '\n' | string split '\n' | string replace -rf '.*"project":"([^"]*)".*' '$1' | sort -u
    else
        __fish_complete_directories (commandline -ct)
    end
end

# The hosts granted to the session that was named before.
function __errand_grants
    set -l words (string match -v -- '-*' (commandline -opc))
    errand grants $words[3] --json --no-start 2>/dev/null | string replace -a '{' '\n' | string split '\n' | string replace -rf '.*"host":"([^"]*)".*' '$1' | sort -u
end

function __errand_signals
    kill -l | string split ' '
end

complete -c errand -f
complete -c errand -n __fish_use_subcommand -s h -l help -d 'print the verbs'
complete -c errand -n __fish_use_subcommand -l version -d 'print the version'
complete -c errand -n __fish_use_subcommand -a run -d 'run a command in a new session, attached to it'
complete -c errand -n __fish_use_subcommand -a session -d 'make, start, stop and look at sessions'
complete -c errand -n __fish_use_subcommand -a grant -d 'let a session reach a host'
complete -c errand -n __fish_use_subcommand -a grants -d 'list the grants of a session, or of all'
complete -c errand -n __fish_use_subcommand -a revoke -d 'take a grant back'
complete -c errand -n __fish_use_subcommand -a receipts -d 'list the provider calls that were made'
complete -c errand -n __fish_use_subcommand -a threads -d 'list, show and remove records'
complete -c errand -n __fish_use_subcommand -a monitor -d 'print what happens to sessions, as it happens'
complete -c errand -n __fish_use_subcommand -a report -d 'print what is enforced here, and what is not'
complete -c errand -n __fish_use_subcommand -a reload -d 'have errandd read its configuration again'
complete -c errand -n __fish_use_subcommand -a config -d 'check a configuration'

complete -c errand -n '__errand_verb session' -a create -d 'make a session without starting it, and print its id'
complete -c errand -n '__errand_verb session' -a start -d 'start a session that was created, or that ended'
complete -c errand -n '__errand_verb session' -a stop -d 'close a session\'s broker and end its command'
complete -c errand -n '__errand_verb session' -a kill -d 'send a signal to a session\'s command'
complete -c errand -n '__errand_verb session' -a attach -d 'attach this terminal to a session'
complete -c errand -n '__errand_verb session' -a logs -d 'print a session\'s transcript'
complete -c errand -n '__errand_verb session' -a list -d 'list the sessions that run or may be started'
complete -c errand -n '__errand_verb session' -a show -d 'show everything about a session'
complete -c errand -n '__errand_verb threads' -a list -d 'list the records of all sessions, ended ones too'
complete -c errand -n '__errand_verb threads' -a show -d 'show a record, its grants and its newest provider calls'
complete -c errand -n '__errand_verb threads' -a rm -d 'remove the record, state and receipts of sessions that ended'
complete -c errand -n '__errand_verb config' -a check -d 'print every problem of a configuration, and what it names that is not there'

complete -c errand -n '__errand_verb run' -a '(__fish_complete_subcommand --fcs-skip=2)'
complete -c errand -n '__errand_verb session create' -a '(__fish_complete_subcommand --fcs-skip=3)'
complete -c errand -n '__errand_verb session start; and __errand_operands 0' -a '(__errand_sessions)'
complete -c errand -n '__errand_verb session stop' -a '(__errand_sessions)'
complete -c errand -n '__errand_verb session kill' -a '(__errand_sessions)'
complete -c errand -n '__errand_verb session attach; and __errand_operands 0' -a '(__errand_sessions)'
complete -c errand -n '__errand_verb session logs; and __errand_operands 0' -a '(__errand_sessions)'
complete -c errand -n '__errand_verb session show; and __errand_operands 0' -a '(__errand_sessions)'
complete -c errand -n '__errand_verb grant; and __errand_operands 0' -a '(__errand_sessions)'
complete -c errand -n '__errand_verb grant; and __errand_operands 2' -a 'once always 10m 1h 1d'
complete -c errand -n '__errand_verb grants; and __errand_operands 0' -a '(__errand_sessions)'
complete -c errand -n '__errand_verb revoke; and __errand_operands 0' -a '(__errand_sessions)'
complete -c errand -n '__errand_verb revoke; and __errand_operands 1' -a '(__errand_grants)'
complete -c errand -n '__errand_verb receipts; and __errand_operands 0' -a '(__errand_sessions)'
complete -c errand -n '__errand_verb threads show; and __errand_operands 0' -a '(__errand_sessions)'
complete -c errand -n '__errand_verb threads rm' -a '(__errand_sessions)'
complete -c errand -n '__errand_verb monitor' -a '(__errand_sessions)'
complete -c errand -n '__errand_verb config check' -F

complete -c errand -n '__errand_verb run' -s h -l help -d 'print this'
complete -c errand -n '__errand_verb run' -s p -l project -xa '(__errand_projects)' -d 'the directory to work in (default: the current one); with --system a project\'s name'
complete -c errand -n '__errand_verb run' -s a -l allow -x -d 'narrow what it may reach to this host, or *.NAME (repeatable)'
complete -c errand -n '__errand_verb run' -l network -xa 'restricted none' -d 'restricted, or none'
complete -c errand -n '__errand_verb run' -l provider -x -d 'the provider to use, of those configured'
complete -c errand -n '__errand_verb run' -l model -x -d 'the model to use'
complete -c errand -n '__errand_verb run' -s e -l env -x -d 'set a variable inside; nothing secret (repeatable)'
complete -c errand -n '__errand_verb run' -l id -x -d 'the session\'s id: 1 to 28 of a-z and 0-9 (default: a new one)'
complete -c errand -n '__errand_verb run' -s t -l terminal -d 'give it a terminal of its own, even from a pipe'
complete -c errand -n '__errand_verb run' -s T -l no-terminal -d 'give it this program\'s input and output as they are'
complete -c errand -n '__errand_verb run' -s F -l file -rF -d 'start the session that ID.json describes, again if there was one'
complete -c errand -n '__errand_verb run' -l rm -d 'remove its record, state and receipts when it has ended'
complete -c errand -n '__errand_verb run' -s q -l quiet -d 'print no notices about refused hosts and the like'
complete -c errand -n '__errand_verb run' -l system -d 'use the system\'s errandd'
complete -c errand -n '__errand_verb run' -l user -d 'use the errandd on the bus of one\'s own session'
complete -c errand -n '__errand_verb run' -l embedded -d 'use an errandd of one\'s own, and start it if need be'
complete -c errand -n '__errand_verb run' -l no-start -d 'do not start an errandd'
complete -c errand -n '__errand_verb run' -l state-dir -xa '(__fish_complete_directories)' -d 'embedded: where its state is (or $ERRAND_EMBEDDED_STATE)'
complete -c errand -n '__errand_verb run' -s c -l config -rF -d 'embedded: its configuration (or $ERRAND_CONFIG)'
complete -c errand -n '__errand_verb run' -l account -xa '(__fish_complete_users)' -d 'embedded, as root: the account whose rights sessions have'

complete -c errand -n '__errand_verb session create' -s h -l help -d 'print this'
complete -c errand -n '__errand_verb session create' -l json -d 'print JSON, for programs'
complete -c errand -n '__errand_verb session create' -l no-pager -d 'do not pipe long output into a pager'
complete -c errand -n '__errand_verb session create' -s p -l project -xa '(__errand_projects)' -d 'the directory to work in (default: the current one); with --system a project\'s name'
complete -c errand -n '__errand_verb session create' -s a -l allow -x -d 'narrow what it may reach to this host, or *.NAME (repeatable)'
complete -c errand -n '__errand_verb session create' -l network -xa 'restricted none' -d 'restricted, or none'
complete -c errand -n '__errand_verb session create' -l provider -x -d 'the provider to use, of those configured'
complete -c errand -n '__errand_verb session create' -l model -x -d 'the model to use'
complete -c errand -n '__errand_verb session create' -s e -l env -x -d 'set a variable inside; nothing secret (repeatable)'
complete -c errand -n '__errand_verb session create' -l id -x -d 'the session\'s id: 1 to 28 of a-z and 0-9 (default: a new one)'
complete -c errand -n '__errand_verb session create' -s t -l terminal -d 'give it a terminal of its own, even from a pipe'
complete -c errand -n '__errand_verb session create' -s T -l no-terminal -d 'give it this program\'s input and output as they are'
complete -c errand -n '__errand_verb session create' -l system -d 'use the system\'s errandd'
complete -c errand -n '__errand_verb session create' -l user -d 'use the errandd on the bus of one\'s own session'
complete -c errand -n '__errand_verb session create' -l embedded -d 'use an errandd of one\'s own, and start it if need be'
complete -c errand -n '__errand_verb session create' -l no-start -d 'do not start an errandd'
complete -c errand -n '__errand_verb session create' -l state-dir -xa '(__fish_complete_directories)' -d 'embedded: where its state is (or $ERRAND_EMBEDDED_STATE)'
complete -c errand -n '__errand_verb session create' -s c -l config -rF -d 'embedded: its configuration (or $ERRAND_CONFIG)'
complete -c errand -n '__errand_verb session create' -l account -xa '(__fish_complete_users)' -d 'embedded, as root: the account whose rights sessions have'

complete -c errand -n '__errand_verb session start' -s h -l help -d 'print this'
complete -c errand -n '__errand_verb session start' -l attach -d 'attach to it, as errand run does'
complete -c errand -n '__errand_verb session start' -l system -d 'use the system\'s errandd'
complete -c errand -n '__errand_verb session start' -l user -d 'use the errandd on the bus of one\'s own session'
complete -c errand -n '__errand_verb session start' -l embedded -d 'use an errandd of one\'s own, and start it if need be'
complete -c errand -n '__errand_verb session start' -l no-start -d 'do not start an errandd'
complete -c errand -n '__errand_verb session start' -l state-dir -xa '(__fish_complete_directories)' -d 'embedded: where its state is (or $ERRAND_EMBEDDED_STATE)'
complete -c errand -n '__errand_verb session start' -s c -l config -rF -d 'embedded: its configuration (or $ERRAND_CONFIG)'
complete -c errand -n '__errand_verb session start' -l account -xa '(__fish_complete_users)' -d 'embedded, as root: the account whose rights sessions have'

complete -c errand -n '__errand_verb session stop' -s h -l help -d 'print this'
complete -c errand -n '__errand_verb session stop' -l system -d 'use the system\'s errandd'
complete -c errand -n '__errand_verb session stop' -l user -d 'use the errandd on the bus of one\'s own session'
complete -c errand -n '__errand_verb session stop' -l embedded -d 'use an errandd of one\'s own, and start it if need be'
complete -c errand -n '__errand_verb session stop' -l no-start -d 'do not start an errandd'
complete -c errand -n '__errand_verb session stop' -l state-dir -xa '(__fish_complete_directories)' -d 'embedded: where its state is (or $ERRAND_EMBEDDED_STATE)'
complete -c errand -n '__errand_verb session stop' -s c -l config -rF -d 'embedded: its configuration (or $ERRAND_CONFIG)'
complete -c errand -n '__errand_verb session stop' -l account -xa '(__fish_complete_users)' -d 'embedded, as root: the account whose rights sessions have'

complete -c errand -n '__errand_verb session kill' -s h -l help -d 'print this'
complete -c errand -n '__errand_verb session kill' -s s -l signal -xa '(__errand_signals)' -d 'a name or number (default: TERM)'
complete -c errand -n '__errand_verb session kill' -l system -d 'use the system\'s errandd'
complete -c errand -n '__errand_verb session kill' -l user -d 'use the errandd on the bus of one\'s own session'
complete -c errand -n '__errand_verb session kill' -l embedded -d 'use an errandd of one\'s own, and start it if need be'
complete -c errand -n '__errand_verb session kill' -l no-start -d 'do not start an errandd'
complete -c errand -n '__errand_verb session kill' -l state-dir -xa '(__fish_complete_directories)' -d 'embedded: where its state is (or $ERRAND_EMBEDDED_STATE)'
complete -c errand -n '__errand_verb session kill' -s c -l config -rF -d 'embedded: its configuration (or $ERRAND_CONFIG)'
complete -c errand -n '__errand_verb session kill' -l account -xa '(__fish_complete_users)' -d 'embedded, as root: the account whose rights sessions have'

complete -c errand -n '__errand_verb session attach' -s h -l help -d 'print this'
complete -c errand -n '__errand_verb session attach' -l system -d 'use the system\'s errandd'
complete -c errand -n '__errand_verb session attach' -l user -d 'use the errandd on the bus of one\'s own session'
complete -c errand -n '__errand_verb session attach' -l embedded -d 'use an errandd of one\'s own, and start it if need be'
complete -c errand -n '__errand_verb session attach' -l no-start -d 'do not start an errandd'
complete -c errand -n '__errand_verb session attach' -l state-dir -xa '(__fish_complete_directories)' -d 'embedded: where its state is (or $ERRAND_EMBEDDED_STATE)'
complete -c errand -n '__errand_verb session attach' -s c -l config -rF -d 'embedded: its configuration (or $ERRAND_CONFIG)'
complete -c errand -n '__errand_verb session attach' -l account -xa '(__fish_complete_users)' -d 'embedded, as root: the account whose rights sessions have'

complete -c errand -n '__errand_verb session logs' -s h -l help -d 'print this'
complete -c errand -n '__errand_verb session logs' -s f -l follow -d 'go on and print what comes'
complete -c errand -n '__errand_verb session logs' -l system -d 'use the system\'s errandd'
complete -c errand -n '__errand_verb session logs' -l user -d 'use the errandd on the bus of one\'s own session'
complete -c errand -n '__errand_verb session logs' -l embedded -d 'use an errandd of one\'s own, and start it if need be'
complete -c errand -n '__errand_verb session logs' -l no-start -d 'do not start an errandd'
complete -c errand -n '__errand_verb session logs' -l state-dir -xa '(__fish_complete_directories)' -d 'embedded: where its state is (or $ERRAND_EMBEDDED_STATE)'
complete -c errand -n '__errand_verb session logs' -s c -l config -rF -d 'embedded: its configuration (or $ERRAND_CONFIG)'
complete -c errand -n '__errand_verb session logs' -l account -xa '(__fish_complete_users)' -d 'embedded, as root: the account whose rights sessions have'

complete -c errand -n '__errand_verb session list' -s h -l help -d 'print this'
complete -c errand -n '__errand_verb session list' -l json -d 'print JSON, for programs'
complete -c errand -n '__errand_verb session list' -l no-pager -d 'do not pipe long output into a pager'
complete -c errand -n '__errand_verb session list' -l all -d 'those that ended, too'
complete -c errand -n '__errand_verb session list' -l system -d 'use the system\'s errandd'
complete -c errand -n '__errand_verb session list' -l user -d 'use the errandd on the bus of one\'s own session'
complete -c errand -n '__errand_verb session list' -l embedded -d 'use an errandd of one\'s own, and start it if need be'
complete -c errand -n '__errand_verb session list' -l no-start -d 'do not start an errandd'
complete -c errand -n '__errand_verb session list' -l state-dir -xa '(__fish_complete_directories)' -d 'embedded: where its state is (or $ERRAND_EMBEDDED_STATE)'
complete -c errand -n '__errand_verb session list' -s c -l config -rF -d 'embedded: its configuration (or $ERRAND_CONFIG)'
complete -c errand -n '__errand_verb session list' -l account -xa '(__fish_complete_users)' -d 'embedded, as root: the account whose rights sessions have'

complete -c errand -n '__errand_verb session show' -s h -l help -d 'print this'
complete -c errand -n '__errand_verb session show' -l json -d 'print JSON, for programs'
complete -c errand -n '__errand_verb session show' -l no-pager -d 'do not pipe long output into a pager'
complete -c errand -n '__errand_verb session show' -l system -d 'use the system\'s errandd'
complete -c errand -n '__errand_verb session show' -l user -d 'use the errandd on the bus of one\'s own session'
complete -c errand -n '__errand_verb session show' -l embedded -d 'use an errandd of one\'s own, and start it if need be'
complete -c errand -n '__errand_verb session show' -l no-start -d 'do not start an errandd'
complete -c errand -n '__errand_verb session show' -l state-dir -xa '(__fish_complete_directories)' -d 'embedded: where its state is (or $ERRAND_EMBEDDED_STATE)'
complete -c errand -n '__errand_verb session show' -s c -l config -rF -d 'embedded: its configuration (or $ERRAND_CONFIG)'
complete -c errand -n '__errand_verb session show' -l account -xa '(__fish_complete_users)' -d 'embedded, as root: the account whose rights sessions have'

complete -c errand -n '__errand_verb grant' -s h -l help -d 'print this'
complete -c errand -n '__errand_verb grant' -l json -d 'print JSON, for programs'
complete -c errand -n '__errand_verb grant' -l no-pager -d 'do not pipe long output into a pager'
complete -c errand -n '__errand_verb grant' -l system -d 'use the system\'s errandd'
complete -c errand -n '__errand_verb grant' -l user -d 'use the errandd on the bus of one\'s own session'
complete -c errand -n '__errand_verb grant' -l embedded -d 'use an errandd of one\'s own, and start it if need be'
complete -c errand -n '__errand_verb grant' -l no-start -d 'do not start an errandd'
complete -c errand -n '__errand_verb grant' -l state-dir -xa '(__fish_complete_directories)' -d 'embedded: where its state is (or $ERRAND_EMBEDDED_STATE)'
complete -c errand -n '__errand_verb grant' -s c -l config -rF -d 'embedded: its configuration (or $ERRAND_CONFIG)'
complete -c errand -n '__errand_verb grant' -l account -xa '(__fish_complete_users)' -d 'embedded, as root: the account whose rights sessions have'

complete -c errand -n '__errand_verb grants' -s h -l help -d 'print this'
complete -c errand -n '__errand_verb grants' -l json -d 'print JSON, for programs'
complete -c errand -n '__errand_verb grants' -l no-pager -d 'do not pipe long output into a pager'
complete -c errand -n '__errand_verb grants' -l system -d 'use the system\'s errandd'
complete -c errand -n '__errand_verb grants' -l user -d 'use the errandd on the bus of one\'s own session'
complete -c errand -n '__errand_verb grants' -l embedded -d 'use an errandd of one\'s own, and start it if need be'
complete -c errand -n '__errand_verb grants' -l no-start -d 'do not start an errandd'
complete -c errand -n '__errand_verb grants' -l state-dir -xa '(__fish_complete_directories)' -d 'embedded: where its state is (or $ERRAND_EMBEDDED_STATE)'
complete -c errand -n '__errand_verb grants' -s c -l config -rF -d 'embedded: its configuration (or $ERRAND_CONFIG)'
complete -c errand -n '__errand_verb grants' -l account -xa '(__fish_complete_users)' -d 'embedded, as root: the account whose rights sessions have'

complete -c errand -n '__errand_verb revoke' -s h -l help -d 'print this'
complete -c errand -n '__errand_verb revoke' -l system -d 'use the system\'s errandd'
complete -c errand -n '__errand_verb revoke' -l user -d 'use the errandd on the bus of one\'s own session'
complete -c errand -n '__errand_verb revoke' -l embedded -d 'use an errandd of one\'s own, and start it if need be'
complete -c errand -n '__errand_verb revoke' -l no-start -d 'do not start an errandd'
complete -c errand -n '__errand_verb revoke' -l state-dir -xa '(__fish_complete_directories)' -d 'embedded: where its state is (or $ERRAND_EMBEDDED_STATE)'
complete -c errand -n '__errand_verb revoke' -s c -l config -rF -d 'embedded: its configuration (or $ERRAND_CONFIG)'
complete -c errand -n '__errand_verb revoke' -l account -xa '(__fish_complete_users)' -d 'embedded, as root: the account whose rights sessions have'

complete -c errand -n '__errand_verb receipts' -s h -l help -d 'print this'
complete -c errand -n '__errand_verb receipts' -l json -d 'print JSON, for programs'
complete -c errand -n '__errand_verb receipts' -l no-pager -d 'do not pipe long output into a pager'
complete -c errand -n '__errand_verb receipts' -s f -l follow -d 'go on and print what comes'
complete -c errand -n '__errand_verb receipts' -s n -l limit -xa '10 50 100 1000 all' -d 'the newest N of them (default: 50; all: every one)'
complete -c errand -n '__errand_verb receipts' -l outcome -xa 'completed interrupted denied refused upstream-unreachable' -d 'those only: completed, interrupted, denied, refused, upstream-unreachable'
complete -c errand -n '__errand_verb receipts' -l since -xa '10m 1h 1d' -d 'those of the last SPAN only, such as 2h'
complete -c errand -n '__errand_verb receipts' -l system -d 'use the system\'s errandd'
complete -c errand -n '__errand_verb receipts' -l user -d 'use the errandd on the bus of one\'s own session'
complete -c errand -n '__errand_verb receipts' -l embedded -d 'use an errandd of one\'s own, and start it if need be'
complete -c errand -n '__errand_verb receipts' -l no-start -d 'do not start an errandd'
complete -c errand -n '__errand_verb receipts' -l state-dir -xa '(__fish_complete_directories)' -d 'embedded: where its state is (or $ERRAND_EMBEDDED_STATE)'
complete -c errand -n '__errand_verb receipts' -s c -l config -rF -d 'embedded: its configuration (or $ERRAND_CONFIG)'
complete -c errand -n '__errand_verb receipts' -l account -xa '(__fish_complete_users)' -d 'embedded, as root: the account whose rights sessions have'

complete -c errand -n '__errand_verb threads list' -s h -l help -d 'print this'
complete -c errand -n '__errand_verb threads list' -l json -d 'print JSON, for programs'
complete -c errand -n '__errand_verb threads list' -l no-pager -d 'do not pipe long output into a pager'
complete -c errand -n '__errand_verb threads list' -l system -d 'use the system\'s errandd'
complete -c errand -n '__errand_verb threads list' -l user -d 'use the errandd on the bus of one\'s own session'
complete -c errand -n '__errand_verb threads list' -l embedded -d 'use an errandd of one\'s own, and start it if need be'
complete -c errand -n '__errand_verb threads list' -l no-start -d 'do not start an errandd'
complete -c errand -n '__errand_verb threads list' -l state-dir -xa '(__fish_complete_directories)' -d 'embedded: where its state is (or $ERRAND_EMBEDDED_STATE)'
complete -c errand -n '__errand_verb threads list' -s c -l config -rF -d 'embedded: its configuration (or $ERRAND_CONFIG)'
complete -c errand -n '__errand_verb threads list' -l account -xa '(__fish_complete_users)' -d 'embedded, as root: the account whose rights sessions have'

complete -c errand -n '__errand_verb threads show' -s h -l help -d 'print this'
complete -c errand -n '__errand_verb threads show' -l json -d 'print JSON, for programs'
complete -c errand -n '__errand_verb threads show' -l no-pager -d 'do not pipe long output into a pager'
complete -c errand -n '__errand_verb threads show' -l system -d 'use the system\'s errandd'
complete -c errand -n '__errand_verb threads show' -l user -d 'use the errandd on the bus of one\'s own session'
complete -c errand -n '__errand_verb threads show' -l embedded -d 'use an errandd of one\'s own, and start it if need be'
complete -c errand -n '__errand_verb threads show' -l no-start -d 'do not start an errandd'
complete -c errand -n '__errand_verb threads show' -l state-dir -xa '(__fish_complete_directories)' -d 'embedded: where its state is (or $ERRAND_EMBEDDED_STATE)'
complete -c errand -n '__errand_verb threads show' -s c -l config -rF -d 'embedded: its configuration (or $ERRAND_CONFIG)'
complete -c errand -n '__errand_verb threads show' -l account -xa '(__fish_complete_users)' -d 'embedded, as root: the account whose rights sessions have'

complete -c errand -n '__errand_verb threads rm' -s h -l help -d 'print this'
complete -c errand -n '__errand_verb threads rm' -l system -d 'use the system\'s errandd'
complete -c errand -n '__errand_verb threads rm' -l user -d 'use the errandd on the bus of one\'s own session'
complete -c errand -n '__errand_verb threads rm' -l embedded -d 'use an errandd of one\'s own, and start it if need be'
complete -c errand -n '__errand_verb threads rm' -l no-start -d 'do not start an errandd'
complete -c errand -n '__errand_verb threads rm' -l state-dir -xa '(__fish_complete_directories)' -d 'embedded: where its state is (or $ERRAND_EMBEDDED_STATE)'
complete -c errand -n '__errand_verb threads rm' -s c -l config -rF -d 'embedded: its configuration (or $ERRAND_CONFIG)'
complete -c errand -n '__errand_verb threads rm' -l account -xa '(__fish_complete_users)' -d 'embedded, as root: the account whose rights sessions have'

complete -c errand -n '__errand_verb monitor' -s h -l help -d 'print this'
complete -c errand -n '__errand_verb monitor' -l json -d 'print JSON, for programs'
complete -c errand -n '__errand_verb monitor' -l system -d 'use the system\'s errandd'
complete -c errand -n '__errand_verb monitor' -l user -d 'use the errandd on the bus of one\'s own session'
complete -c errand -n '__errand_verb monitor' -l embedded -d 'use an errandd of one\'s own, and start it if need be'
complete -c errand -n '__errand_verb monitor' -l no-start -d 'do not start an errandd'
complete -c errand -n '__errand_verb monitor' -l state-dir -xa '(__fish_complete_directories)' -d 'embedded: where its state is (or $ERRAND_EMBEDDED_STATE)'
complete -c errand -n '__errand_verb monitor' -s c -l config -rF -d 'embedded: its configuration (or $ERRAND_CONFIG)'
complete -c errand -n '__errand_verb monitor' -l account -xa '(__fish_complete_users)' -d 'embedded, as root: the account whose rights sessions have'

complete -c errand -n '__errand_verb report' -s h -l help -d 'print this'
complete -c errand -n '__errand_verb report' -l json -d 'print JSON, for programs'
complete -c errand -n '__errand_verb report' -l no-pager -d 'do not pipe long output into a pager'
complete -c errand -n '__errand_verb report' -l system -d 'use the system\'s errandd'
complete -c errand -n '__errand_verb report' -l user -d 'use the errandd on the bus of one\'s own session'
complete -c errand -n '__errand_verb report' -l embedded -d 'use an errandd of one\'s own, and start it if need be'
complete -c errand -n '__errand_verb report' -l no-start -d 'do not start an errandd'
complete -c errand -n '__errand_verb report' -l state-dir -xa '(__fish_complete_directories)' -d 'embedded: where its state is (or $ERRAND_EMBEDDED_STATE)'
complete -c errand -n '__errand_verb report' -s c -l config -rF -d 'embedded: its configuration (or $ERRAND_CONFIG)'
complete -c errand -n '__errand_verb report' -l account -xa '(__fish_complete_users)' -d 'embedded, as root: the account whose rights sessions have'

complete -c errand -n '__errand_verb reload' -s h -l help -d 'print this'
complete -c errand -n '__errand_verb reload' -l system -d 'use the system\'s errandd'
complete -c errand -n '__errand_verb reload' -l user -d 'use the errandd on the bus of one\'s own session'
complete -c errand -n '__errand_verb reload' -l embedded -d 'use an errandd of one\'s own, and start it if need be'
complete -c errand -n '__errand_verb reload' -l no-start -d 'do not start an errandd'
complete -c errand -n '__errand_verb reload' -l state-dir -xa '(__fish_complete_directories)' -d 'embedded: where its state is (or $ERRAND_EMBEDDED_STATE)'
complete -c errand -n '__errand_verb reload' -s c -l config -rF -d 'embedded: its configuration (or $ERRAND_CONFIG)'
complete -c errand -n '__errand_verb reload' -l account -xa '(__fish_complete_users)' -d 'embedded, as root: the account whose rights sessions have'

complete -c errand -n '__errand_verb config check' -s h -l help -d 'print this'
complete -c errand -n '__errand_verb config check' -l json -d 'print JSON, for programs'
complete -c errand -n '__errand_verb config check' -l no-pager -d 'do not pipe long output into a pager'
complete -c errand -n '__errand_verb config check' -l system -d 'use the system\'s errandd'
complete -c errand -n '__errand_verb config check' -l user -d 'use the errandd on the bus of one\'s own session'
complete -c errand -n '__errand_verb config check' -l embedded -d 'use an errandd of one\'s own, and start it if need be'
