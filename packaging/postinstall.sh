#!/bin/sh
# deb: "configure VERSION-BEFORE"; rpm: "1" at the first installation, "2" at an upgrade.
# The service is not enabled here: it needs a configuration first.
set -e
if command -v systemd-sysusers >/dev/null 2>&1; then
	systemd-sysusers autoscaler-agent.conf
	# A container without /proc/sys or a read-only /etc is no reason to fail the package.
	systemd-tmpfiles --create autoscaler-agent.conf || true
fi
if [ -d /run/systemd/system ]; then
	systemctl daemon-reload
	journalctl --update-catalog >/dev/null 2>&1 || true
	# At an upgrade: a running service takes the new binary, a stopped one stays stopped.
	systemctl try-restart autoscaler-agent.service || true
fi
