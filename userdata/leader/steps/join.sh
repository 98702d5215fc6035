phase kubeadm-join
sandbox --kubernetes-version "$VERSION" ${IMAGES:+--image-repository "$IMAGES"}
if [ ! -e "$state/initialized" ]; then
  mkdir -p "${config%/*}"
  chmod 700 "${config%/*}"
  ( umask 077; join_config | if [ -n "$CERTIFICATE_KEY" ]; then cat; else grep -v '"certificateKey"'; fi >"$config" )
  joined=yes
  kubeadm join --config "$config" || joined=''
  rm -f "$config"
  if [ -z "$joined" ]; then
    echo 'mend what kubeadm names, undo what it did (kubeadm reset --force; where it got as far as etcd, docs/ha.md: replacing one), and run this script again'
    die reason=kubeadm-join
  fi
  : >"$state/initialized"
  [ "$values" = - ] || rm -f "$values"
fi
KUBECONFIG=/etc/kubernetes/admin.conf
export KUBECONFIG
tries=60
until kubectl get --raw /readyz >/dev/null 2>&1; do
  tries=$((tries - 1))
  [ "$tries" -gt 0 ] || die "reason=api-server"
  sleep 2
done
# The token has done its work. The certificates in the Secret kubeadm-certs end with their own.
[ -z "$JOIN_TOKEN" ] || kubectl -n kube-system delete secret "bootstrap-token-${JOIN_TOKEN%%.*}" --ignore-not-found >/dev/null || phase "warning reason=token-stays"
