conf=/etc/containerd/config.toml made='# Made by autoscaler-agent.'
own_config() {
  containerd config default >"$tmp/default.toml" || die reason=containerd-config
  { echo "$made"; sed -e 's/SystemdCgroup = false/SystemdCgroup = true/' \
    -e 's#config_path = ""#config_path = "/etc/containerd/certs.d"#' "$tmp/default.toml"; } >"$tmp/config.toml"
  install -m 644 "$tmp/config.toml" $conf
}
# sandbox OPTIONS: kubeadm's image, in a configuration that is no operator's.
sandbox() {
  if [ -z "$IMAGES" ] && ! grep -qsx "$made" $conf || [ ! -e $conf ]; then return 0; fi
  pause=$(kubeadm config images list "$@" 2>/dev/null | grep pause:) || { phase "warning reason=sandbox-image"; return 0; }
  sed -E "s#^( *sandbox(_image)? = ).*#\1\"$pause\"#" $conf >"$tmp/config.toml"
  cmp -s "$tmp/config.toml" $conf && return 0
  install -m 644 "$tmp/config.toml" $conf
  systemctl try-restart containerd || :
}
