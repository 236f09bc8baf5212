mkdir -p /etc/errand; echo '{"sandbox":{"requireFullEnforcement":false, "gracePeriodMs":1000, "egress":{"allow":["example.com"]}}}' > /etc/errand/errand.json
systemctl start errandd
B="busctl --no-pager --"
M="$B call org.errand1 /org/errand1 org.errand1.Manager"
S() { local id=$1; shift; $B call org.errand1 /org/errand1/session/$id org.errand1.Session "$@"; }
state() { for i in "$@"; do echo "  $i: $(S $i Describe | grep -oE '"(State|ExitReason|ScopeUnit|BrokerUnit)" s "[^"]*"|"(RefusedCount)" t [0-9]*|"ExitStatus" i [0-9]*' | tr '\n' ' ')"; done; }
new() { local id=$1; shift; $M CreateSession 'a{sv}' 3 project s web id s $id command as $# "$@" >/dev/null; S $id Start; }
