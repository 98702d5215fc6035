phase kubeadm-init
chmod 600 "$config"
configure --config "$config" # before-init may have changed the repository
if [ ! -e "$state/initialized" ]; then
  if ! kubeadm init --config "$config" --skip-token-print; then
    echo 'mend what kubeadm names, undo what it did (kubeadm reset --force), and run this script again'
    die reason=kubeadm-init
  fi
  : >"$state/initialized"
fi
