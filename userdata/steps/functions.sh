umask 077
phase() {
  case $1 in warning* | failed*) ;; *) at=${1%% *} ;; esac
  echo "autoscaler-agent: phase=$*"
  c=${JOIN_CONSOLE:-/dev/console}
  if [ -w "$c" ]; then echo "autoscaler-agent: phase=$*" 2>/dev/null >"$c" || :; fi
}
up() { cut -d . -f 1 /proc/uptime; }
began=$(up)
# late SECONDS: what takes so long would not end within the time of the last word, which is well
# before AUTOSCALER_SCALING_MAX_NODE_PROVISION_TIME gives the machine up.
late() { [ $(($(up) - began + $1)) -gt "${JOIN_SECONDS:-660}" ]; }
died='' at=start
die() { died=1; phase "failed $*"; exit 1; }
# full names the first directory whose file system has no 8 MiB left.
full() {
  for d in "${tmp:-/tmp}" "${prefix:-/}" /opt /var/lib /etc /run; do
    free=$(df -Pk "$d" 2>/dev/null | tail -n 1 | tr -s ' ' | cut -d ' ' -f 4)
    if [ "${free:-9999}" -lt 8192 ]; then echo "$d"; return; fi
  done
}
# stopped is the last word of a script that ends early.
stopped() {
  rc=$?
  if [ "$rc" -eq 0 ] || [ -n "$died" ]; then return; fi
  d=$(full)
  if [ -n "$d" ]; then phase "failed reason=no-space dir=$d during=$at"; else phase "failed reason=$at rc=$rc"; fi
}
