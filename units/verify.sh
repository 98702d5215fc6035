#!/bin/sh
# Verifies the unit files. systemd-analyze 252 exits 0 on unknown keys and bad
# values and only prints a warning, so any line of output about our unit fails.
set -eu
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
# The binary and the user are not installed here; only the unit's own words are judged.
for unit in autoscaler-agent.service autoscaler-agent-renew.service autoscaler-agent-renew.timer; do
	sed -e 's#^ExecStart=[^ ]*#ExecStart=/bin/true#' -e 's#^ExecReload=[^ ]*#ExecReload=/bin/true#' "$(dirname "$0")/$unit" > "$dir/$unit"
done
out=$(systemd-analyze verify --man=no "$dir"/autoscaler-agent* 2>&1 | grep autoscaler-agent || true)
[ -z "$out" ] || { echo "$out"; exit 1; }
# How much of the machine each service reaches, in tenths of systemd's scale of 0 to 10.
for unit in autoscaler-agent.service autoscaler-agent-renew.service; do
	systemd-analyze security --no-pager --offline=true --threshold=25 "$dir/$unit" > "$dir/exposure" || { tail -n 1 "$dir/exposure"; exit 1; }
done
