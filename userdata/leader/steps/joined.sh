# The token has done its work. The certificates in the Secret kubeadm-certs end with their own.
[ -z "$JOIN_TOKEN" ] || kubectl -n kube-system delete secret "bootstrap-token-${JOIN_TOKEN%%.*}" --ignore-not-found >/dev/null || phase "warning reason=token-stays"
