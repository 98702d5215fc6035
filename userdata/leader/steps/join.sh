phase kubeadm-join
configure --kubernetes-version "$VERSION" ${IMAGES:+--image-repository "$IMAGES"}
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
