# why reads kubeadm's words, and the machine's own state where a wait merely ended. What a check
# warns of is no cause: kubeadm looks up the host name as well.
why() {
  if [ -n "$(full)" ]; then echo no-space; return; fi
  case $(grep -v '\[WARNING ' "$dir/kubeadm.log" | tail -n 40) in
    *'no space left on device'*) echo no-space ;;
    *'could not find a JWS signature'* | *'token id '*) echo join-token ;;
    *'failed to verify JWS signature'*) echo cluster-info-signature ;;
    *'cluster CA found in'*) echo ca-pin ;;
    *'was different from the first'* | *'signed by unknown authority'*) echo cluster-info-changed ;;
    *'is not yet valid: '*) if [ "${1#-}" -gt 60 ]; then echo clock; else echo server-expired; fi ;;
    *'certificate is valid for '* | *'any IP SANs'*) echo server-name ;;
    *'only supports deploying'* | *'[ERROR KubeletVersion]'* | *'old API spec'* | *'is registered for version "kubeadm'*) echo version-skew ;;
    *'[ERROR CRI]'* | *'[ERROR ContainerRuntimeV'*) echo containerd ;;
    *'[preflight] Some fatal errors'*)
      echo "preflight checks=$(sed -n 's/.*\[ERROR \([A-Za-z0-9_-]*\)\].*/\1/p' "$dir/kubeadm.log" | tr '\n' ',' | sed 's/,$//')"
      ;;
    *'already exists in the cluster'*) echo node-name ;;
    *'Starting the kubelet'*) running ;;
    *'cluster-info" is forbidden'* | *'cluster-info" not found'*) echo cluster-info-closed ;;
    *'is forbidden: '* | *Unauthorized*) echo token-refused ;;
    *'dial tcp: lookup '*) echo dns ;;
    *proxyconnect* | *'Proxy Auth'*) echo endpoint-proxy ;;
    *'connection refused'*) echo endpoint-refused ;;
    *'no route to host'* | *'network is unreachable'*) echo endpoint-route ;;
    *'deadline exceeded'* | *'i/o timeout'* | *'Client.Timeout'* | *'handshake timeout'*)
      r=0
      getent ahosts "${JOIN_ENDPOINT%:*}" >/dev/null || r=$?
      if [ $r -eq 2 ]; then echo dns; else echo endpoint-timeout; fi
      ;;
    *': EOF'* | *'reset by peer'* | *'tls: '* | *'to HTTPS client'*) echo endpoint-other ;;
    *'failed to request the cluster-info'*) echo endpoint ;;
    *) echo kubeadm-join ;;
  esac
}
# running is for a kubelet that was started and has not joined.
running() {
  if broken containerd; then
    echo containerd
  elif ! broken kubelet && grep -q 'TLS Bootstrap' "$dir/kubeadm.log"; then
    echo csr
  else
    case $(journalctl -qu kubelet -n 200 -o cat | grep 'command failed' | tail -n 1) in
      *'cgroup v1'*) echo kubelet-cgroup-v1 ;;
      *'swap on'*) echo kubelet-swap ;;
      *' CRI v1 '*) echo containerd ;;
      *' flag'* | *' config'*) echo kubelet-config ;;
      *) echo kubelet ;;
    esac
  fi
}
# broken UNIT: it does not stay up.
broken() {
  systemctl is-active -q "$1" || return 0
  n=$(systemctl show -p NRestarts --value "$1")
  [ "${n:-0}" -gt 2 ]
}
# ahead is by how many seconds this clock is ahead of the API server's, 0 where nothing answers.
ahead() {
  url=https://$JOIN_ENDPOINT/version
  d=$(curl -skI --noproxy '*' -m 10 "$url" | tr -d '\r' | sed -n 's/^[Dd]ate: //p')
  if [ -n "$d" ]; then echo $(($(date +%s) - $(date -d "$d" +%s))); else echo 0; fi
}
phase "join node=$NODE_NAME"
tries=${JOIN_TRIES:-5} one=${JOIN_TRY:-120}
pki=${JOIN_PKI:-/var/lib/kubelet/pki}
until
  { timeout --foreground "$one" kubeadm join --config "$dir/join.yaml" && : >"$dir/ok"; } 2>&1 | tee "$dir/kubeadm.log"
  [ -e "$dir/ok" ]
do
  tries=$((tries - 1)) off=$(ahead)
  r=$(why "$off")
  if [ "${off#-}" -gt 300 ]; then r="$r clock=$off"; fi
  if [ "$tries" -le 0 ] || late "$one"; then die "reason=$r node=$NODE_NAME"; fi
  phase "retry left=$tries reason=$r"
  mkdir -p "$dir/pki"
  cp -a "$pki"/kubelet-client* "$dir/pki/" 2>/dev/null || :
  kubeadm reset --force >/dev/null 2>&1 || :
  mkdir -p "$pki"
  cp -a "$dir/pki"/kubelet-client* "$pki/" 2>/dev/null || :
  sleep "${JOIN_PAUSE:-15}"
done
rm -rf "$dir/join.yaml" "$dir/ok" "$dir/kubeadm.log" "$dir/pki"
phase joined
