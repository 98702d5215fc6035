#!/bin/sh
# deb: "remove" or "upgrade VERSION"; rpm: "0" when the last version goes.
set -e
case "$1" in
remove | 0)
	if [ -d /run/systemd/system ]; then
		systemctl --no-reload disable --now autoscaler-agent.service autoscaler-agent-renew.timer || true
	fi
	;;
esac
