# SPDX-License-Identifier: LGPL-2.1-or-later
# fish completion for bailey. Verbs and options are compared with the program's own table by a test.

complete -c bailey -f
complete -c bailey -n __fish_use_subcommand -l help -d 'print a help'
complete -c bailey -n __fish_use_subcommand -l version -d 'print the version'
complete -c bailey -n __fish_use_subcommand -a run -d 'run a program confined'
complete -c bailey -n __fish_use_subcommand -a show -d 'print the policy it would run under'
complete -c bailey -n __fish_use_subcommand -a shell -d 'start a shell confined to this directory\'s policy'
complete -c bailey -n __fish_use_subcommand -a audit -d 'run it, and list what its policy does not grant'
complete -c bailey -n __fish_use_subcommand -a trust -d 'accept a bailey.toml that was found by walking'
complete -c bailey -n __fish_use_subcommand -a profile -d 'list, print or generate profiles'
complete -c bailey -n __fish_use_subcommand -a doctor -d 'try what confines a run, and say how to close gaps'

function __bailey_profiles
    bailey profile list 2>/dev/null | string replace -r ' .*' ''
end

# The verb is the word after the program's name, and for profiles the two.
function __bailey_verb
    set -l words (commandline -opc)
    set -l verb $words[2]
    if test "$verb" = profile
        set verb (string trim "$verb $words[3]")
    end
    test "$verb" = "$argv"
end

complete -c bailey -n '__bailey_verb profile' -a list -d 'list the profiles there are'
complete -c bailey -n '__bailey_verb profile' -a show -d 'print one'
complete -c bailey -n '__bailey_verb profile' -a generate -d 'turn an audit\'s trace into a policy'
complete -c bailey -n '__bailey_verb run' -a '(__fish_complete_subcommand --fcs-skip=2)'
complete -c bailey -n '__bailey_verb show' -a '(__fish_complete_command)'
complete -c bailey -n '__bailey_verb audit' -a '(__fish_complete_subcommand --fcs-skip=2)'
complete -c bailey -n '__bailey_verb trust' -F
complete -c bailey -n '__bailey_verb profile show' -a '(__bailey_profiles)'

complete -c bailey -n '__bailey_verb run' -l config -rF -d 'add a policy file on top of all others'
complete -c bailey -n '__bailey_verb run' -l profile -xa '(__bailey_profiles)' -d 'start from that profile'
complete -c bailey -n '__bailey_verb run' -l only-config -d 'read no policy file but that of --config, if any'
complete -c bailey -n '__bailey_verb run' -l user -xa '(__fish_complete_users)' -d 'as root: whose work it is (else SUDO_UID\'s, else the directory\'s owner\'s)'
complete -c bailey -n '__bailey_verb run' -l json -d 'print for programs: the policy, the list, what was found, a run\'s closing line'
complete -c bailey -n '__bailey_verb run' -l home -xa '(__fish_complete_directories)' -d 'use that directory for the private home'
complete -c bailey -n '__bailey_verb run' -l no-isolate -d 'Landlock and seccomp alone: what is not granted stays visible'
complete -c bailey -n '__bailey_verb run' -l proxy-net -d 'a network namespace of its own, connected by pasta: the host\'s address is not seen'
complete -c bailey -n '__bailey_verb run' -l egress-proxy -x -d 'the same, and TCP to what listens on the host\'s loopback, mapped there, is all'
complete -c bailey -n '__bailey_verb run' -l strict -d 'refuse to run when anything cannot be enforced here'
complete -c bailey -n '__bailey_verb run' -l accept-gap -xa 'namespaces isolation landlock landlock-refer landlock-truncate landlock-ioctl landlock-scope landlock-network seccomp sysfs nested-deny read-only private-tmp private-home proxy-net loopback-rule resources' -d 'under --strict: that one may be missing (repeatable)'
complete -c bailey -n '__bailey_verb run' -l quiet -d 'do not print what was enforced; what was not is printed always'
complete -c bailey -n '__bailey_verb run' -l explain -d 'when it fails, tell what was refused, and what would grant it'
complete -c bailey -n '__bailey_verb run' -l broker-socket -rF -d 'hand a listener inside to the broker there'
complete -c bailey -n '__bailey_verb run' -l broker-token-fd -x -d 'read the token of that hand-over from there'
complete -c bailey -n '__bailey_verb run' -l listen -x -d 'where that listener is, inside'
complete -c bailey -n '__bailey_verb run' -l env-fd -x -d 'add KEY=VALUE records from a sealed memfd to the environment'
complete -c bailey -n '__bailey_verb run' -l report-fd -x -d 'write one line of JSON there before the target starts'
complete -c bailey -n '__bailey_verb run' -l console-socket -x -d 'open a terminal inside and send its master there'
complete -c bailey -n '__bailey_verb run' -l console-size -x -d 'how large that terminal is at first'
complete -c bailey -n '__bailey_verb run' -l stderr-fd -x -d 'the target\'s standard error; bailey\'s own stays what it is'

complete -c bailey -n '__bailey_verb show' -l config -rF -d 'add a policy file on top of all others'
complete -c bailey -n '__bailey_verb show' -l profile -xa '(__bailey_profiles)' -d 'start from that profile'
complete -c bailey -n '__bailey_verb show' -l only-config -d 'read no policy file but that of --config, if any'
complete -c bailey -n '__bailey_verb show' -l user -xa '(__fish_complete_users)' -d 'as root: whose work it is (else SUDO_UID\'s, else the directory\'s owner\'s)'
complete -c bailey -n '__bailey_verb show' -l json -d 'print for programs: the policy, the list, what was found, a run\'s closing line'
complete -c bailey -n '__bailey_verb show' -l plan -d 'print the steps that a run takes'
complete -c bailey -n '__bailey_verb show' -l home -xa '(__fish_complete_directories)' -d 'use that directory for the private home'
complete -c bailey -n '__bailey_verb show' -l no-isolate -d 'Landlock and seccomp alone: what is not granted stays visible'
complete -c bailey -n '__bailey_verb show' -l proxy-net -d 'a network namespace of its own, connected by pasta: the host\'s address is not seen'
complete -c bailey -n '__bailey_verb show' -l egress-proxy -x -d 'the same, and TCP to what listens on the host\'s loopback, mapped there, is all'

complete -c bailey -n '__bailey_verb shell' -l config -rF -d 'add a policy file on top of all others'
complete -c bailey -n '__bailey_verb shell' -l profile -xa '(__bailey_profiles)' -d 'start from that profile'
complete -c bailey -n '__bailey_verb shell' -l only-config -d 'read no policy file but that of --config, if any'
complete -c bailey -n '__bailey_verb shell' -l user -xa '(__fish_complete_users)' -d 'as root: whose work it is (else SUDO_UID\'s, else the directory\'s owner\'s)'
complete -c bailey -n '__bailey_verb shell' -l json -d 'print for programs: the policy, the list, what was found, a run\'s closing line'
complete -c bailey -n '__bailey_verb shell' -l home -xa '(__fish_complete_directories)' -d 'use that directory for the private home'
complete -c bailey -n '__bailey_verb shell' -l no-isolate -d 'Landlock and seccomp alone: what is not granted stays visible'
complete -c bailey -n '__bailey_verb shell' -l proxy-net -d 'a network namespace of its own, connected by pasta: the host\'s address is not seen'
complete -c bailey -n '__bailey_verb shell' -l egress-proxy -x -d 'the same, and TCP to what listens on the host\'s loopback, mapped there, is all'
complete -c bailey -n '__bailey_verb shell' -l strict -d 'refuse to run when anything cannot be enforced here'
complete -c bailey -n '__bailey_verb shell' -l accept-gap -xa 'namespaces isolation landlock landlock-refer landlock-truncate landlock-ioctl landlock-scope landlock-network seccomp sysfs nested-deny read-only private-tmp private-home proxy-net loopback-rule resources' -d 'under --strict: that one may be missing (repeatable)'
complete -c bailey -n '__bailey_verb shell' -l quiet -d 'do not print what was enforced; what was not is printed always'
complete -c bailey -n '__bailey_verb shell' -l explain -d 'when it fails, tell what was refused, and what would grant it'

complete -c bailey -n '__bailey_verb audit' -l config -rF -d 'add a policy file on top of all others'
complete -c bailey -n '__bailey_verb audit' -l profile -xa '(__bailey_profiles)' -d 'start from that profile'
complete -c bailey -n '__bailey_verb audit' -l only-config -d 'read no policy file but that of --config, if any'
complete -c bailey -n '__bailey_verb audit' -l user -xa '(__fish_complete_users)' -d 'as root: whose work it is (else SUDO_UID\'s, else the directory\'s owner\'s)'
complete -c bailey -n '__bailey_verb audit' -l home -xa '(__fish_complete_directories)' -d 'use that directory for the private home'
complete -c bailey -n '__bailey_verb audit' -l strict -d 'refuse to run when anything cannot be enforced here'
complete -c bailey -n '__bailey_verb audit' -l accept-gap -xa 'namespaces isolation landlock landlock-refer landlock-truncate landlock-ioctl landlock-scope seccomp sysfs nested-deny read-only private-tmp private-home resources' -d 'under --strict: that one may be missing (repeatable)'
complete -c bailey -n '__bailey_verb audit' -l quiet -d 'do not print what was enforced; what was not is printed always'
complete -c bailey -n '__bailey_verb audit' -l save-trace -rF -d 'write what was seen there'
complete -c bailey -n '__bailey_verb audit' -l unconfined -d 'enforce nothing, only look'

complete -c bailey -n '__bailey_verb trust' -l user -xa '(__fish_complete_users)' -d 'as root: whose work it is (else SUDO_UID\'s, else the directory\'s owner\'s)'
complete -c bailey -n '__bailey_verb trust' -l json -d 'print for programs: the policy, the list, what was found, a run\'s closing line'
complete -c bailey -n '__bailey_verb trust' -l yes -d 'accept without asking'
complete -c bailey -n '__bailey_verb trust' -l list -d 'list what was accepted, and whether it still is that'
complete -c bailey -n '__bailey_verb trust' -l revoke -d 'take back: FILE is a path or a digest, there or not'

complete -c bailey -n '__bailey_verb profile list' -l user -xa '(__fish_complete_users)' -d 'as root: whose work it is (else SUDO_UID\'s, else the directory\'s owner\'s)'
complete -c bailey -n '__bailey_verb profile list' -l json -d 'print for programs: the policy, the list, what was found, a run\'s closing line'

complete -c bailey -n '__bailey_verb profile show' -l user -xa '(__fish_complete_users)' -d 'as root: whose work it is (else SUDO_UID\'s, else the directory\'s owner\'s)'

complete -c bailey -n '__bailey_verb profile generate' -l trace -rF -d 'the trace that an audit saved'
complete -c bailey -n '__bailey_verb profile generate' -l target -rF -d 'the program that was audited'
complete -c bailey -n '__bailey_verb profile generate' -l include-high-risk -d 'grant also what is listed apart'
complete -c bailey -n '__bailey_verb profile generate' -l accept-truncated -d 'take a trace that lost something'

complete -c bailey -n '__bailey_verb doctor' -l user -xa '(__fish_complete_users)' -d 'as root: whose work it is (else SUDO_UID\'s, else the directory\'s owner\'s)'
complete -c bailey -n '__bailey_verb doctor' -l json -d 'print for programs: the policy, the list, what was found, a run\'s closing line'
