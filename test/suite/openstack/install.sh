#!/bin/sh
# Installs the services as Debian's packages (root; about 135 MB to download, 570 MB on
# disk). Nothing is started: the tests do that themselves, on ports of their own.
set -eu
packages="python3-keystone python3-placement python3-glance glance-common python3-nova nova-common python3-neutron
  neutron-common python3-cinder cinder-common python3-magnum magnum-common python3-werkzeug python3-openstackclient rabbitmq-server mariadb-server-core mariadb-client-core"
missing=
for p in $packages; do
  [ "$(dpkg-query -W -f='${db:Status-Status}' "$p" 2>/dev/null)" = installed ] || missing="$missing $p"
done
[ -n "$missing" ] || exit 0
[ "$(id -u)" -eq 0 ] || { echo "these packages are missing, and only root installs them:$missing" >&2; exit 1; }
export DEBIAN_FRONTEND=noninteractive
apt-get update -q
# Debian asks this file before a package starts a daemon.
guard=/usr/sbin/policy-rc.d
if [ ! -e "$guard" ]; then
  printf '#!/bin/sh\nexit 101\n' >"$guard"
  chmod 755 "$guard"
  trap 'rm -f "$guard"' EXIT
fi
# shellcheck disable=SC2086
apt-get install -y -q --no-install-recommends $missing
