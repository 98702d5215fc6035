KUBECONFIG=/etc/kubernetes/admin.conf
export KUBECONFIG
tries=60
until kubectl get --raw /readyz >/dev/null 2>&1; do
  tries=$((tries - 1))
  [ "$tries" -gt 0 ] || die "reason=api-server"
  sleep 2
done
