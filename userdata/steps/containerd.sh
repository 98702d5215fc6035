conf=/etc/containerd/config.toml made='# Made by autoscaler-agent.' dropins='"/etc/containerd/conf.d/*.toml"'
# cri VERSION PAUSE REGISTRIES: settings under the names that a configuration of this version has for them.
cri() {
  images='plugins."io.containerd.cri.v1.images"' pinned=pinned_images.sandbox runtime='plugins."io.containerd.cri.v1.runtime"'
  if [ "$1" -le 2 ]; then images='plugins."io.containerd.grpc.v1.cri"' pinned=sandbox_image runtime=$images; fi
  echo "version = $1"
  [ -z "$2" ] || echo "$images.$pinned = \"$2\""
  [ -z "$3" ] || echo "$images.registry.config_path = \"$3\""
}
own_config() {
  echo "$made"
  echo "imports = [$dropins]"
  cri "$newest" "$pause" /etc/containerd/certs.d
  echo "$runtime.containerd.runtimes.runc.runtime_type = \"io.containerd.runc.v2\""
  echo "$runtime.containerd.runtimes.runc.options.SystemdCgroup = true"
}
# reads FILE: containerd reads there what was asked for. What it prints has one form, whatever the file has.
reads() {
  containerd -c "$1" config dump >"$tmp/dump.toml" 2>/dev/null || return 1
  q="['\"]"
  [ -z "$IMAGES" ] || grep -qE "^ *sandbox(_image)? = $q$pause$q" "$tmp/dump.toml" || return 1
  [ -z "$REGISTRIES" ] || grep -qE "^ *config_path = $q$REGISTRIES$q" "$tmp/dump.toml"
}
# configure OPTIONS: containerd has the sandbox image that kubeadm names for them. A configuration that the image
# brings keeps what it says, but for what was asked for.
configure() {
  base=$conf next=/etc/containerd/.config.toml.new image=/usr/share/containerd/config.toml own=''
  [ -e $base ] || base=$image # Flatcar's
  if [ ! -e $base ] || grep -qx "$made" $base || containerd -c $base config dump 2>/dev/null | grep -q '^disabled_plugins = .*cri'; then own=yes; fi
  if [ -z "$own$IMAGES$REGISTRIES" ]; then return 0; fi
  newest=$(containerd config default | sed -n 's/^version = //p')
  [ -n "$newest" ] || die reason=containerd-config
  pause=$(kubeadm config images list "$@" 2>/dev/null | grep pause:) || phase "warning reason=sandbox-image"
  if [ -n "$own" ]; then
    own_config >$next
    if cmp -s $next $conf; then rm $next; return 0; fi
  elif reads $base; then
    return 0
  elif [ "$newest" -gt 2 ]; then
    version=$(sed -n 's/^version *= *\([0-9]*\).*/\1/p' $base)
    cri "${version:-1}" "${IMAGES:+$pause}" "$REGISTRIES" >/etc/containerd/conf.d/autoscaler-agent.toml
    if reads $base; then
      cat $base
    elif grep -q '^imports *= *\[' $base; then
      sed "s#^imports *= *\[#&$dropins, #" $base
    else
      echo "imports = [$dropins]"
      cat $base
    fi >$next
  else # for a file with one setting of a plugin, containerd 1 would drop the plugin's others
    sed -E ${IMAGES:+-e "s#^( *sandbox_image = ).*#\1\"$pause\"#"} ${REGISTRIES:+-e "s#^( *config_path = ).*#\1\"$REGISTRIES\"#"} $base >$next
  fi
  if [ -z "$own" ] && ! reads $next; then
    rm -f $next /etc/containerd/conf.d/autoscaler-agent.toml
    phase "warning reason=containerd-config"
    return 0
  fi
  chmod -R u=rwX,go=rX $next /etc/containerd/conf.d
  mv -f $next $conf
  if [ -e $image ]; then
    d=/etc/systemd/system/containerd.service.d
    mkdir -p $d
    printf '[Service]\nEnvironment=CONTAINERD_CONFIG=%s\n' $conf >$d/10-config.conf
    chmod -R u=rwX,go=rX $d
    systemctl daemon-reload
  fi
  systemctl try-restart containerd || :
}
