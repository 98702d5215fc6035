refuse() { echo "$0: $1" >&2; exit 1; }
values=${1:-/root/control-plane-join.env} text=''
if [ ! -e "$state/initialized" ]; then
  if [ "$values" = - ]; then
    text=$(cat)
  else
    [ -f "$values" ] || refuse "there is no file $values: make it on a machine of the control plane (docs/ha.md), copy it here with mode 0600, or give its text on standard input with the argument -"
    case $(stat -c %a "$values") in
      400 | 600) ;;
      *) refuse "others may read $values: make a new one, its secrets are known, and copy it with mode 0600" ;;
    esac
    text=$(cat "$values")
  fi
fi
# echo and sed here are no place for a secret in an argument: printf is the shell's own.
value() { printf '%s\n' "$text" | sed -n "s/^$1=//p" | tail -n 1; }
JOIN_TOKEN=$(value JOIN_TOKEN) JOIN_CERT_HASH=$(value JOIN_CERT_HASH) CERTIFICATE_KEY=$(value CERTIFICATE_KEY) text=''
if [ ! -e "$state/initialized" ]; then
  case $JOIN_TOKEN in
    ??????.????????????????) ;;
    *) refuse "$values has no JOIN_TOKEN of the form abcdef.0123456789abcdef" ;;
  esac
  case $JOIN_CERT_HASH in
    sha256:????????????????????????????????????????????????????????????????) ;;
    *) refuse "$values has no JOIN_CERT_HASH of the form sha256: and 64 hex digits" ;;
  esac
  case ${#CERTIFICATE_KEY} in
    64) ;;
    0) [ -e /etc/kubernetes/pki/ca.key ] || refuse "$values has no CERTIFICATE_KEY, and the cluster's certificates are not in /etc/kubernetes/pki either (docs/ha.md tells both ways)" ;;
    *) refuse "CERTIFICATE_KEY in $values is not 64 hex digits" ;;
  esac
  case $JOIN_TOKEN${JOIN_CERT_HASH#sha256:}$CERTIFICATE_KEY in
    *[!a-z0-9.]*) refuse "a value in $values has a character that is none of a-z, 0-9 and ." ;;
  esac
fi
