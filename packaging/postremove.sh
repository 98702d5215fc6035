#!/bin/sh
# deb: "remove", "purge" or "upgrade"; rpm: "0" when the last version goes.
# State and configuration stay until a purge: the ledger of machines is in them.
set -e
case "$1" in
remove | purge | 0)
	if [ -d /run/systemd/system ]; then
		systemctl daemon-reload
		journalctl --update-catalog >/dev/null 2>&1 || true
	fi
	# The link is the package's own; a file in its place is not.
	if [ "$(readlink /etc/worker.env 2>/dev/null)" = /var/lib/autoscaler-agent/worker.env ]; then
		rm -f /etc/worker.env
	fi
	;;
esac
if [ "$1" = purge ]; then
	rm -rf /var/lib/autoscaler-agent /etc/autoscaler-agent
fi
