# why reads kubeadm's words.
why() {
  case $(tail -n 40 "$dir/kubeadm.log") in
    *'could not find a JWS signature'* | *'token id '*) echo join-token ;;
    *'failed to verify JWS signature'*) echo cluster-info-signature ;;
    *'cluster CA found in'*) echo ca-pin ;;
    *'was different from the first'* | *'signed by unknown authority'*) echo cluster-info-changed ;;
    *'failed to request the cluster-info'*) echo endpoint ;;
    *'[preflight] Some fatal errors'*)
      echo "preflight checks=$(sed -n 's/.*\[ERROR \([A-Za-z0-9_-]*\)\].*/\1/p' "$dir/kubeadm.log" | tr '\n' ',' | sed 's/,$//')"
      ;;
    *'already exists in the cluster'*) echo node-name ;;
    *'no space left on device'*) echo no-space ;;
    *) echo kubeadm-join ;;
  esac
}
phase "join node=$NODE_NAME"
tries=${JOIN_TRIES:-5}
pki=${JOIN_PKI:-/var/lib/kubelet/pki}
until
  { kubeadm join --config "$dir/join.yaml" && : >"$dir/ok"; } 2>&1 | tee "$dir/kubeadm.log"
  [ -e "$dir/ok" ]
do
  tries=$((tries - 1))
  [ "$tries" -gt 0 ] || die "reason=$(why) node=$NODE_NAME"
  phase "retry left=$tries reason=$(why)"
  mkdir -p "$dir/pki"
  cp -a "$pki"/kubelet-client* "$dir/pki/" 2>/dev/null || :
  kubeadm reset --force >/dev/null 2>&1 || :
  mkdir -p "$pki"
  cp -a "$dir/pki"/kubelet-client* "$pki/" 2>/dev/null || :
  sleep "${JOIN_PAUSE:-15}"
done
rm -rf "$dir/join.yaml" "$dir/ok" "$dir/kubeadm.log" "$dir/pki"
phase joined
