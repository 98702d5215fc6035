# node_ips FAMILY FAMILY: the addresses from which the machine reaches other networks, which the kubelet registers. Those
# of IPv6 may come after the network is online.
node_ips() {
  NODE_IPS=''
  for family; do
    to=192.0.2.1
    [ "$family" = ipv4 ] || to=2001:db8::1
    tries=${JOIN_ADDRESS_TRIES:-30}
    while :; do
      a=$(ip "-${family#ipv}" -o route get $to 2>/dev/null | sed -n 's/.* src \([0-9a-f.:]*\).*/\1/p')
      case $a in '' | fe80:*) ;; *) break ;; esac
      tries=$((tries - 1))
      [ "$tries" -gt 0 ] || die "reason=node-ip family=$family"
      sleep 1
    done
    NODE_IPS=${NODE_IPS:+$NODE_IPS,}$a
  done
}
