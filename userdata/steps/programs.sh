if ! have containerd; then
  fetch containerd "$CONTAINERD" "$tmp/containerd.tgz"
  tar -C "$tmp" -xzf "$tmp/containerd.tgz"
  # containerd is the last one: where it is, all are.
  for f in "$tmp"/bin/*; do [ "${f##*/}" = containerd ] || place "$f"; done
  place "$tmp/bin/containerd"
  rm -rf "${tmp:?}/bin" "$tmp/containerd.tgz"
fi
if ! systemctl cat containerd.service >/dev/null 2>&1; then
  u=/etc/systemd/system/containerd.service
  cat >$u.new <<UNIT
[Unit]
Description=containerd
After=network.target
[Service]
ExecStart=$(command -v containerd)
Environment=PATH=$bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin
Type=notify
Delegate=yes
KillMode=process
Restart=always
RestartSec=5
LimitNOFILE=1048576
TasksMax=infinity
OOMScoreAdjust=-999
[Install]
WantedBy=multi-user.target
UNIT
  chmod 644 $u.new
  mv -f $u.new $u
fi
if ! have runc; then
  fetch runc "$RUNC" "$tmp/runc"
  place "$tmp/runc"
fi
if [ ! -e /opt/cni/bin/loopback ] || [ -e /opt/cni/bin/.partial ]; then
  fetch cni "$CNI" "$tmp/cni.tgz"
  : >/opt/cni/bin/.partial
  tar -C /opt/cni/bin -xzf "$tmp/cni.tgz"
  rm -f "$tmp/cni.tgz" /opt/cni/bin/.partial
fi
if ! have crictl; then
  fetch crictl "$CRICTL" "$tmp/crictl.tgz"
  tar -C "$tmp" -xzf "$tmp/crictl.tgz" crictl
  place "$tmp/crictl"
fi
[ -e /etc/crictl.yaml ] || echo 'runtime-endpoint: unix:///run/containerd/containerd.sock' >/etc/crictl.yaml
for name in kubeadm kubelet; do
  if ! have $name; then
    fetch $name "$KUBERNETES/$name" "$tmp/$name"
    place "$tmp/$name"
    rm -f "$tmp/$name"
  fi
done
configure --kubernetes-version "$VERSION" ${IMAGES:+--image-repository "$IMAGES"}
rm -rf "$tmp"
if ! systemctl cat kubelet.service >/dev/null 2>&1; then
  u=/etc/systemd/system/kubelet.service
  mkdir -p $u.d
  cat >$u.d/10-kubeadm.conf <<'UNIT'
[Service]
Environment="KUBELET_KUBECONFIG_ARGS=--bootstrap-kubeconfig=/etc/kubernetes/bootstrap-kubelet.conf --kubeconfig=/etc/kubernetes/kubelet.conf"
Environment="KUBELET_CONFIG_ARGS=--config=/var/lib/kubelet/config.yaml"
EnvironmentFile=-/var/lib/kubelet/kubeadm-flags.env
ExecStart=
UNIT
  echo "ExecStart=$(command -v kubelet)"' $KUBELET_KUBECONFIG_ARGS $KUBELET_CONFIG_ARGS $KUBELET_KUBEADM_ARGS' >>$u.d/10-kubeadm.conf
  # The unit is the last: where it is, all is there.
  cat >$u.new <<UNIT
[Unit]
Description=kubelet
Wants=network-online.target
After=network-online.target containerd.service
StartLimitIntervalSec=0
[Service]
ExecStart=$(command -v kubelet)
Environment=PATH=$bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin
Restart=always
RestartSec=10
[Install]
WantedBy=multi-user.target
UNIT
  chmod -R u=rwX,go=rX $u.new $u.d
  mv -f $u.new $u
fi
phase services
systemctl daemon-reload
systemctl enable containerd.service kubelet.service
systemctl start containerd.service || die reason=containerd
