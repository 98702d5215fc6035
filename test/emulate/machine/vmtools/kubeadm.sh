#!/bin/sh
# kubeadm of a played machine: asks the test program to join (descriptor 3) and ends
# with the exit code that it answers (descriptor 4), as the real one would.
set -eu
case ${1:-} in
  join)
    [ "$#" -eq 3 ] && [ "$2" = --config ] || { echo "kubeadm: want join --config FILE" >&2; exit 2; }
    echo "$3" >&3
    read -r rc <&4
    exit "$rc"
    ;;
  reset) exit 0 ;;
  *)
    echo "kubeadm: $*: not played" >&2
    exit 2
    ;;
esac
