#!/bin/sh
# Makes the certificate of the attest listener, signed by the cluster's CA, for the name or
# address that workers reach the leader at: attest-certificate.sh ENDPOINT, as root on the
# leader. A certificate that is there is made anew; the agent reads it without a restart.
set -eu
[ $# -eq 1 ] || {
	echo 'usage: attest-certificate.sh ENDPOINT (a DNS name or an address)' >&2
	exit 64
}
pki=${PKI:-/etc/kubernetes/pki} out=${OUT:-/etc/autoscaler-agent} group=${GROUP:-autoscaler-agent}
case $1 in
*[!0-9.]*) name=DNS:$1 ;;
*) name=IP:$1 ;;
esac
umask 077
openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -subj /CN=autoscaler-agent-attest \
	-addext "subjectAltName=$name" -addext extendedKeyUsage=serverAuth -addext basicConstraints=CA:FALSE \
	-days 365 -CA "$pki/ca.crt" -CAkey "$pki/ca.key" -keyout "$out/attest.key.new" -out "$out/attest.crt.new" 2>/dev/null
chgrp "$group" "$out/attest.key.new"
chmod 640 "$out/attest.key.new"
chmod 644 "$out/attest.crt.new"
mv "$out/attest.key.new" "$out/attest.key"
mv "$out/attest.crt.new" "$out/attest.crt"
