# The person who ran the script gets kubectl's configuration, as a person's own files are written: by that person.
person=${SUDO_USER:-root}
home=$(getent passwd "$person" | cut -d : -f 6)
if [ -e "$home/.kube/config" ]; then
  cmp -s /etc/kubernetes/admin.conf "$home/.kube/config" || echo "$home/.kube/config is there already and stays: this cluster's is /etc/kubernetes/admin.conf"
else
  runuser -u "$person" -- sh -c 'umask 077; mkdir -p "$1/.kube" && cat >"$1/.kube/config"' sh "$home" </etc/kubernetes/admin.conf ||
    phase "warning reason=kubeconfig"
fi
