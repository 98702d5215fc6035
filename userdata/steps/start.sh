if [ -e /etc/kubernetes/kubelet.conf ]; then
  phase already-joined
  exit 0
fi
trap stopped EXIT
phase start
