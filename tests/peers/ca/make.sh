#!/bin/sh
# SPDX-License-Identifier: LGPL-2.1-or-later
# Makes the certificates of the test peers again. They are committed, so that a test run needs no certtool and every run sees the
# same bytes; nothing trusts this authority but the tests, and its key is thrown away.
set -eu
cd "$(dirname "$0")"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
from="2020-01-01 00:00:00 UTC"
to="2100-01-01 00:00:00 UTC"

template() { # FILE COMMON-NAME FROM TO LINES…
        file=$1 cn=$2 start=$3 end=$4
        shift 4
        {
                printf 'cn = "%s"\nactivation_date = "%s"\nexpiration_date = "%s"\n' "$cn" "$start" "$end"
                printf '%s\n' "$@"
        } >"$work/$file"
}

key() { certtool --generate-privkey --key-type=ecdsa --curve=secp256r1 --no-text --outfile "$1" 2>/dev/null; }

sign() { # NAME
        key "$1-key.pem"
        certtool --generate-certificate --load-privkey "$1-key.pem" --load-ca-certificate ca.pem --load-ca-privkey "$work/ca-key.pem" \
                --template "$work/$1" --no-text --outfile "$1.pem" 2>/dev/null
}

key "$work/ca-key.pem"
template ca "errand test authority" "$from" "$to" ca cert_signing_key
certtool --generate-self-signed --load-privkey "$work/ca-key.pem" --template "$work/ca" --no-text --outfile ca.pem 2>/dev/null

template server "errand test peer" "$from" "$to" tls_www_server signing_key \
        'dns_name = "api.example.com"' 'dns_name = "provider.example"' 'dns_name = "denied.example"' \
        'dns_name = "*.example.org"' 'ip_address = "9.9.9.9"' 'ip_address = "127.0.0.1"'
sign server
template wrong-name "errand test peer with another name" "$from" "$to" tls_www_server signing_key 'dns_name = "other.example"'
sign wrong-name
template expired "errand test peer of yesterday" "$from" "2020-02-01 00:00:00 UTC" tls_www_server signing_key \
        'dns_name = "api.example.com"' 'dns_name = "provider.example"'
sign expired
template self-signed "errand test peer on its own" "$from" "$to" tls_www_server signing_key \
        'dns_name = "api.example.com"' 'dns_name = "provider.example"'
key self-signed-key.pem
certtool --generate-self-signed --load-privkey self-signed-key.pem --template "$work/self-signed" --no-text \
        --outfile self-signed.pem 2>/dev/null
chmod 644 ./*.pem
