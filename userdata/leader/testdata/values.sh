#!/bin/sh
# Made by autoscaler-agent leader-config --join --format values. Run it as root on a machine of the
# control plane, once for each machine that joins. It uploads the cluster's certificates into the
# Secret kubeadm-certs, encrypted with a key that kubeadm lets end after two hours, and writes this key, a
# bootstrap token for an hour and the hash of the cluster's CA into a file of mode 0600.
set -eu
umask 077
PATH=$PATH:/opt/bin
KUBECONFIG=/etc/kubernetes/admin.conf
export KUBECONFIG
file=${1:-/root/control-plane-join.env}
[ -e /etc/kubernetes/pki/ca.key ] || { echo "$0: the key of the cluster's CA is not in /etc/kubernetes/pki: run it on a machine of the control plane, as root" >&2; exit 1; }
dir=$(mktemp -d /run/control-plane-join.XXXXXX)
trap 'rm -rf "$dir"' EXIT
key=$(kubeadm certs certificate-key)
# By a file and not by a flag: arguments are readable by every user of the machine.
cat >"$dir/upload.yaml" <<END
apiVersion: kubeadm.k8s.io/v1beta4
kind: InitConfiguration
certificateKey: "$key"
---
apiVersion: kubeadm.k8s.io/v1beta4
kind: ClusterConfiguration
kubernetesVersion: v1.36.3
END
kubeadm init phase upload-certs --upload-certs --config "$dir/upload.yaml" >/dev/null
kubeadm token create --ttl 1h --description 'for one machine of the control plane' --print-join-command >"$dir/command" 2>/dev/null
{
  sed -n 'h; s/.* --token \([a-z0-9.]*\) .*/JOIN_TOKEN=\1/p; g; s/.* --discovery-token-ca-cert-hash \([a-z0-9:]*\).*/JOIN_CERT_HASH=\1/p' "$dir/command"
  echo "CERTIFICATE_KEY=$key"
} >"$dir/values"
[ "$(wc -l <"$dir/values")" = 3 ] || { echo "$0: kubeadm token create printed another form than known" >&2; exit 1; }
install -m 600 "$dir/values" "$file"
echo "$file is for one machine and ends within an hour. Copy it as root with mode 0600 (scp -p), and delete it here"
