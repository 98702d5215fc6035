package main

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// The tables of this file are inputs that an operator gets wrong. Each is answered with one
// clear line, the exit code says whose mistake it was, and no file is half-written.

// badSettings are lines of agent.env and what the one line about them says.
func badSettings() [][2]string {
	setting := func(name, value string) [2]string {
		return [2]string{"AUTOSCALER_" + name + "=" + value + "\n", "AUTOSCALER_" + name}
	}
	return [][2]string{
		{"AUTOSCALER_LISTEN: off\n", "AUTOSCALER_LISTEN=VALUE"}, {"export AUTOSCALER_LISTEN=off\n", "without export"},
		{"autoscaler_listen=off\n", "did you mean AUTOSCALER_LISTEN?"}, {"AUTOSCALE_LISTEN=off\n", "did you mean AUTOSCALER_LISTEN?"},
		{"AUTOSCALER_LISTN=off\n", "did you mean AUTOSCALER_LISTEN?"}, {"--expander=price\n", "AUTOSCALER_SCALING_EXPANDER"},
		{"AUTOSCALER_EXPANDER=price\n", "write AUTOSCALER_SCALING_EXPANDER"}, {"AUTOSCALER_MAX_NODES_TOTAL=3\n", "write AUTOSCALER_SCALING_MAX_NODES_TOTAL"},
		{"SCALE_DOWN_ENABLED=false\n", "AUTOSCALER_SCALING_SCALE_DOWN"}, {"AUTOSCALER_LISTEN\n", "with = after the name"}, {"what\n", "NAME=VALUE"},
		setting("LISTEN", "127.0.0.1:99999"), setting("LISTEN", "127.0.0.1:http-x"), setting("LOG_LEVEL", "panic"), setting("SCALING_MAX_NODES_TOTAL", "-1"), setting("SCALING_MAX_CORES_TOTAL", "-1"), setting("SCALING_MAX_MEMORY_TOTAL", "-1"),
		setting("SCALING_MIN_CORES_TOTAL", "-1"), setting("SCALING_MAX_TOTAL_UNREADY_PERCENT", "450"), setting("SCALING_UTILIZATION_THRESHOLD", "NaN"), [2]string{"AUTOSCALER_SCALING_BACKOFF_INITIAL=2h\n", "AUTOSCALER_SCALING_BACKOFF_MAX"},
		setting("SCALING_OK_TOTAL_UNREADY", "-1"), setting("SCALING_MAX_EMPTY_AT_ONCE", "-1"), setting("SCALING_MAX_DRAIN_AT_ONCE", "-1"), setting("SCALING_MAX_POD_EVICTION_TIME", "-1s"),
		setting("SCALING_UNREADY_FOR", "-1s"), setting("SCALING_DELAY_AFTER_ADD", "-1s"), setting("SCALING_DELAY_AFTER_FAILURE", "-1s"), setting("SCALING_NEW_POD_DELAY", "-1s"), setting("SCALING_BURST_HOLD", "-1s"), setting("SCALING_MAX_NODE_PROVISION_TIME", "0s"),
		setting("SCALING_BACKOFF_RESET", "-1s"), setting("SCALING_MAX_GRACEFUL_TERMINATION", "-1s"), setting("SCALING_MAX_BULK_SOFT_TAINT_COUNT", "-1"), setting("SCALING_FRESH_FOR", "-1s"),
		setting("SCALING_CONSOLIDATE", "perhaps"), setting("SCALING_CONSOLIDATE_SAVING", "2"), setting("SCALING_CONSOLIDATE_AFTER", "-1s"), setting("SCALING_DELAY_AFTER_TAINT", "-1s"), setting("SCALING_MAX_NODE_STARTUP_TIME", "-1s"),
		setting("KUBELET_MAX_PODS", "-1"), setting("KUBELET_MAX_PODS", "0"), setting("OBSERVE_FAST", "0s"), setting("OBSERVE_TIMEOUT", "0s"), setting("CSR_PER_NODE_HOUR", "-1"), setting("NODECLEANER_MAX_SHARE", "2"), setting("NODECLEANER_GRACE", "-1s"),
		setting("CSR_ALARM_PENDING", "-1"), setting("CSR_JOIN_WINDOW", "-1s"), setting("CSR_WARN_AFTER", "-1s"), setting("CSR_MAX_EXPIRATION", "-1s"), setting("CSR_INVENTORY_MAX_AGE", "-1s"), setting("NODECLEANER_MASS_HOLD", "-1s"), setting("NODECLEANER_BREAK_ERRORS", "-1"),
		setting("AWS_VM_MEMORY_OVERHEAD_PERCENT", "450"), setting("AWS_TIMEOUT", "0s"), setting("LEASE_RETRY_PERIOD", "0s"), setting("NODECLEANER_MAX_SHARE", "NaN"),
		setting("LISTEN", "8085"), setting("LISTEN", "nowhere"), setting("LOG_LEVEL", "loud"), setting("STATE_DIR", "relative"), setting("PROVIDER", "azure"),
		setting("PROVIDER", "asg,,nova"), setting("SCALING_EXPANDER", "cheapest"), setting("SCALING_UNNEEDED_FOR", "10"), setting("SCALING_UNNEEDED_FOR", "-1m"),
		setting("SCALING_SCALE_DOWN", "maybe"), setting("SCALING_MAX_NODES_TOTAL", "many"), setting("SCALING_UTILIZATION_THRESHOLD", "1.5"),
		setting("SCALING_GPU_TOTAL", "x"), setting("SCALER_IDLE", "0s"), setting("SCALER_CAP", "1ms"), setting("SCALER_QUIET", "-1s"), setting("LEASE_DURATION", "1s"), setting("LEASE_RENEW_DEADLINE", "1s"),
		setting("OBSERVE_SLOW", "1s"), setting("KUBELET_KUBE_RESERVED", "cpu=lots"), setting("KUBELET_EVICTION_HARD", "memory.available<5%"),
		setting("CSR_JOIN", "clsoed"), setting("CSR_EXTRA_NAMES", "fixed.example.org"), setting("NODECLEANER_MODE", "destroy"), setting("BOOTSTRAP_TOKEN_TTL", "9000h"),

		setting("SCALING_REPAIR_CONDITIONS", "Ready"), setting("SCALING_REPAIR_CONDITIONS", "disk pressure"), setting("SCALING_REPAIR_CONDITIONS", "!!"), setting("SCALING_REPAIR_CONDITIONS", "KernelDeadlock,"), setting("SCALING_STARTUP_TAINTS", "a=b:NoSchedule"), setting("SCALING_STATUS_TAINTS", "a:NoSchedule"),
		setting("GROUPS_FILE", "/does/not/exist.yaml"), {"AUTOSCALER_LISTEN=off\nAUTOSCALER_LISTEN_PAGE=true\n", "AUTOSCALER_LISTEN_PAGE is true"}, setting("BOOTSTRAP_FILE", "/etc"), setting("KUBECONFIG", "/etc"), setting("OPENSTACK_CLOUD_CONFIG", "/etc"), setting("BOOTSTRAP_ATTEST_CERT_FILE", "/etc"),
		setting("BOOTSTRAP_TOKEN_GROUPS", "system:bootstrappers:a,system:bootstrappers:b,system:bootstrappers:c"), setting("SCALING_MAX_NODE_AGE", "1m"), setting("SCALING_REPAIR_AFTER", "1s"), setting("BOOTSTRAP_TOKEN_MAX_AGE", "1m"), setting("CSR_DNS_DOMAIN", "cluster local"), setting("BOOTSTRAP_UPGRADE", "minor"),
		setting("OBSERVE_SCHEDULERS", "a,,b"), setting("CSR_SERVICE_CIDRS", "10.96.0.0/12,"), setting("AWS_AUTO_DISCOVERY", "asg:tag=a,,b"), setting("KUBELET_KUBE_RESERVED", "cpu=1,,memory=1Gi"), setting("SCALING_DRAIN_PRIORITY_CONFIG", ",0:60"), setting("SCALING_BALANCE_LABELS", "a b"),
		setting("MAGNUM_HEAT", "perhaps"), setting("EXTERNALGRPC_CERT_FILE", "cert.pem"), setting("SCALING_MAX_NODES_TOTAL", "1_000"), setting("LOG_LEVEL", "warning"), setting("CSR_FORBIDDEN_NAMES", "10.0.0.0/8"), setting("SCALING_UNNEEDED_FOR", "100000h"),

		// Lines.
		{"AUTOSCALER_LISTEN = off\n", ""}, {"set AUTOSCALER_LISTEN=off\n", "NAME=VALUE"}, {"- AUTOSCALER_LISTEN=off\n", "NAME=VALUE"}, {"AUTOSCALER_LISTEN=\"off\nAUTOSCALER_LOG_LEVEL=info\n", "line break"},
		{"AUTOSCALER_SCALING_UNEEDED_FOR=5m\n", "did you mean AUTOSCALER_SCALING_UNNEEDED_FOR?"}, {"AUTOSCALER_FROBNICATE_EVERYTHING_NOW=1\n", "remove it"}, {"AUTOSCALER_=1\n", "AUTOSCALER_"},
		{"AUTOSCALER_SCALING_EXPANDERS=price\n", "did you mean AUTOSCALER_SCALING_EXPANDER?"}, {"AUTOSCALER-LISTEN=off\n", "AUTOSCALER_LISTEN=VALUE"}, {"AUTOSCALER.LISTEN=off\n", "NAME=VALUE"},
		{"--scale-down-unneeded-time=10m\n", "AUTOSCALER_SCALING_UNNEEDED_FOR"}, {"--nodes=1:10:workers\n", "AUTOSCALER_AWS_GROUPS"}, {"AUTOSCALER_SKIP_NODES_WITH_LOCAL_STORAGE=false\n", "AUTOSCALER_SCALING_SKIP_NODES_WITH_LOCAL_STORAGE"},
		{"\ufeffAUTOSCALER_LISTEN=off\n", "byte order mark"}, {"\ufeff# a comment\n", "byte order mark"}, {"AUTOSCALER_LISTEN=caf\xe9\n", "line 1 is not UTF-8"}, {"# x\nAUTOSCALER_LISTEN=off\xff\xfe\n", "line 2 is not UTF-8"},
		{"\u00a0AUTOSCALER_LISTEN=off\n", "AUTOSCALER_LISTEN=VALUE"}, {"AUTOSCALER_LISTÉN=off\n", "NAME=VALUE"}, {"{\"AUTOSCALER_LISTEN\": \"off\"}\n", "AUTOSCALER_LISTEN=VALUE"}, {"groups: {a: {}}\n", "NAME=VALUE"},
		{"OS_PASSWORD hunter2\n", "OS_PASSWORD"}, {"aGVsbG8gd29ybGQ9/+==\n", "ignores the line: write NAME=VALUE"}, {"AUTOSCALER_LISTEN=off\r\nAUTOSCALER_LOG_LEVEL=loud\r\n", "AUTOSCALER_LOG_LEVEL"},
		{"AUTOSCALER_AWS_CLUSTER_NAME='demo\nAUTOSCALER_LISTEN=off\n", "line break"}, {"AUTOSCALER_AWS_CLUSTER_NAME=\x1b[31mred\n", "control character"}, {"AUTOSCALER_LISTEN=nowhere # metrics\n", "AUTOSCALER_LISTEN"}, {"AUTOSCALER_SCALER_IDLE=40s # longest\n", "a comment needs a line of its own"},
		{"AUTOSCALER_CLOUD_PROVIDER=aws\n", "AUTOSCALER_PROVIDER"}, {"MAX_NODE_PROVISION_TIME=15m\n", "AUTOSCALER_SCALING_MAX_NODE_PROVISION_TIME"}, {"AUTOSCALER_LISTEN=off\x00\n", "NUL byte"},
		{"HTTPS_PROXY=http://user:hunter2@proxy:port\n", "HTTPS_PROXY is no address of a proxy"}, {"HTTP_PROXY=http//proxy:3128\n", "HTTP_PROXY is no address of a proxy"}, {"https_proxy=ftp://proxy:21\n", "https_proxy is no address of a proxy"},
		setting("KUBELET_KUBE_RESERVED", "cpu=100m,cpu=200m"), setting("KUBELET_EVICTION_HARD", "memory.available<1Gi,memory.available<2Gi"), setting("BOOTSTRAP_ATTEST_ACCOUNT", "12"), setting("BOOTSTRAP_ATTEST_ROLES", "arn:aws:iam::1:role/x"),
		[2]string{"AUTOSCALER_SCALING_UNNEEDED_FOR=99999999h\n", "that is out of range"},
		// Values of the agent itself.
		setting("LISTEN", "127.0.0.1:-1"), setting("LISTEN", "127.0.0.1"), setting("LISTEN", "http://127.0.0.1:8085"), setting("SOCKET", "/"+strings.Repeat("s", 120)), setting("LOG_LEVEL", "trace"), setting("LOG_LEVEL", "2"),
		setting("PROVIDER", "asg,asg"), setting("PROVIDER", "asg;nova"), setting("PROVIDER", "ASG"), setting("STATE_DIR", "~/state"), setting("SCALER_ENABLED", "on"), setting("SCALER_DRY_RUN", "2"), setting("SCALER_IDLE", "30"), setting("SCALER_CALM", "two seconds"),
		setting("SCALER_STATUS_CONFIG_MAP", "kube-system/status"), setting("LEASE_DURATION", "15"), setting("LEASE_RETRY_PERIOD", "often"),
		setting("OBSERVE_STALE_AFTER", "1s"), setting("OBSERVE_TIMEOUT", "25"), setting("OBSERVE_FAST", "1ms"),
		setting("SCALER_IDLE", "30s\u00a0"), setting("LISTEN", "“off”"), setting("LISTEN", "::1:8085"), setting("SCALER_ENABLED", "ja"), setting("STATE_DIR", "$HOME/state"), setting("SOCKET", "agent.sock"), setting("GROUPS_FILE", "groups.yaml"),
		setting("NODE_NAME", "Bad Name"), setting("LEASE_NAMESPACE", "Kube_System"), setting("LEASE_NAME", "a/b"), setting("OBSERVE_TIMEOUT", "9999999h"),
		// The policy.
		setting("SCALING_MAX_NODES_TOTAL", "１０"), setting("SCALING_MAX_NODES_TOTAL", "99999999999999999999"), setting("SCALING_MAX_NODES_TOTAL", "9223372036854775807"), setting("SCALING_MAX_CORES_TOTAL", "9223372036854775807"), setting("SCALING_MIN_CORES_TOTAL", "9223372036854775807"),
		setting("SCALING_UTILIZATION_THRESHOLD", "-0.0000001"), setting("SCALING_UTILIZATION_THRESHOLD", "1e400"), setting("SCALING_CONSOLIDATE_SAVING", "-Inf"), setting("AWS_VM_MEMORY_OVERHEAD_PERCENT", "+Inf"), setting("AWS_VM_MEMORY_OVERHEAD_PERCENT", "NaN"),
		setting("SCALING_EXPANDER", "least-waste;price"), setting("SCALING_EXPANDER", "grpc"), setting("SCALING_RANDOM_SEED", "-1"), setting("SCALING_RANDOM_SEED", "dice"), setting("SCALING_MAX_NODES_TOTAL", "1e3"), setting("SCALING_MAX_NODES_TOTAL", "10.5"),
		setting("SCALING_MAX_CORES_TOTAL", "64 cores"), setting("SCALING_MAX_MEMORY_TOTAL", "128Gi"), setting("SCALING_MAX_MEMORY_TOTAL", "137438953472"), setting("SCALING_MIN_MEMORY_TOTAL", "137438953472"),
		{"AUTOSCALER_SCALING_MIN_CORES_TOTAL=9\nAUTOSCALER_SCALING_MAX_CORES_TOTAL=8\n", "AUTOSCALER_SCALING_MIN_CORES_TOTAL"}, {"AUTOSCALER_SCALING_MIN_MEMORY_TOTAL=9\nAUTOSCALER_SCALING_MAX_MEMORY_TOTAL=8\n", "AUTOSCALER_SCALING_MIN_MEMORY_TOTAL"},
		setting("SCALING_GPU_TOTAL", "gpu:0:16"), setting("SCALING_GPU_TOTAL", "nvidia.com/gpu:16"), setting("SCALING_GPU_TOTAL", "nvidia.com/gpu:16:0"), setting("SCALING_GPU_TOTAL", "nvidia.com/gpu:-1:4"), setting("SCALING_GPU_TOTAL", "nvidia.com/gpu:a:b"), setting("SCALING_GPU_TOTAL", "nvidia-tesla-k80:0:4"),
		setting("SCALING_UTILIZATION_THRESHOLD", "50%"), setting("SCALING_UTILIZATION_THRESHOLD", "-0.5"), setting("SCALING_UTILIZATION_THRESHOLD", "Inf"), setting("SCALING_UTILIZATION_THRESHOLD", "0,5"), setting("SCALING_GPU_UTILIZATION_THRESHOLD", "2"),
		setting("SCALING_UNNEEDED_FOR", "10 m"), setting("SCALING_UNNEEDED_FOR", "1d"), setting("SCALING_UNREADY_FOR", "soon"), setting("SCALING_BACKOFF_MAX", "1m"), setting("SCALING_MAX_TOTAL_UNREADY_PERCENT", "45%"), setting("SCALING_MAX_TOTAL_UNREADY_PERCENT", "-1"),
		setting("SCALING_DRAIN_PRIORITY_CONFIG", "high:60"), setting("SCALING_DRAIN_PRIORITY_CONFIG", "0"), setting("SCALING_DRAIN_PRIORITY_CONFIG", "0:-1"), setting("SCALING_EXPENDABLE_PODS_CUTOFF", "low"), setting("SCALING_CONSOLIDATE", "true"), setting("SCALING_CONSOLIDATE_SAVING", "15%"), setting("SCALING_CONSOLIDATE_SAVING", "NaN"),
		setting("SCALING_ENFORCE_MIN", "yes please"), setting("SCALING_DAEMONSET_EVICTION_FOR_EMPTY_NODES", "never"), setting("SCALING_MAX_DRAIN_AT_ONCE", "ten"), setting("SCALING_NODE_DELETION_DELAY_TIMEOUT", "-2m"),
		// What kubelets keep back.
		setting("KUBELET_KUBE_RESERVED", "cpu:100m"), setting("KUBELET_KUBE_RESERVED", "gpu=1"), setting("KUBELET_SYSTEM_RESERVED", "memory=-1Gi"), setting("KUBELET_EVICTION_HARD", "memory.available=100Mi"), setting("KUBELET_EVICTION_HARD", "nodefs.available<150%"), setting("KUBELET_EVICTION_HARD", "memory.free<100Mi"), setting("KUBELET_MAX_PODS", "110.5"),
		// The clouds.
		setting("AWS_REGION", "eu-west-1a"), setting("AWS_REGION", "Frankfurt"), setting("AWS_CLUSTER_NAME", "my cluster"), setting("AWS_GROUPS", "5:1:workers"), setting("AWS_GROUPS", "a:b:workers"), setting("AWS_GROUPS", "1:workers"),
		setting("AWS_AUTO_DISCOVERY", "tag=key"), setting("AWS_AUTO_DISCOVERY", "asg:label=key"), setting("AWS_VM_MEMORY_OVERHEAD_PERCENT", "-1"), setting("AWS_TIMEOUT", "-10s"), setting("AWS_SECONDARY_ADDRESSES", "eth0"),
		{"AUTOSCALER_PROVIDER=nova\nAUTOSCALER_NOVA_CLUSTER_NAME=my cluster\n", "AUTOSCALER_NOVA_CLUSTER_NAME"}, {"AUTOSCALER_PROVIDER=nova\nAUTOSCALER_NOVA_CLUSTER_NAME=a\nAUTOSCALER_NOVA_PARALLEL_CREATES=0\n", "AUTOSCALER_NOVA_PARALLEL_CREATES"},
		{"AUTOSCALER_PROVIDER=nova\nAUTOSCALER_NOVA_CLUSTER_NAME=a\nAUTOSCALER_NOVA_VM_MEMORY_OVERHEAD_PERCENT=90\n", "AUTOSCALER_NOVA_VM_MEMORY_OVERHEAD_PERCENT"}, {"AUTOSCALER_PROVIDER=nova\nAUTOSCALER_NOVA_CLUSTER_NAME=a\nAUTOSCALER_OPENSTACK_TIMEOUT=0s\n", "AUTOSCALER_OPENSTACK_TIMEOUT"},
		{"AUTOSCALER_PROVIDER=magnum\nAUTOSCALER_MAGNUM_CLUSTER=a\nAUTOSCALER_MAGNUM_GROUPS=3:1:w\n", "AUTOSCALER_MAGNUM_GROUPS"}, {"AUTOSCALER_PROVIDER=magnum\nAUTOSCALER_MAGNUM_CLUSTER=a\nAUTOSCALER_MAGNUM_GROUPS=w\nAUTOSCALER_MAGNUM_HEAT=always\n", "AUTOSCALER_MAGNUM_HEAT"},
		{"AUTOSCALER_PROVIDER=magnum\nAUTOSCALER_MAGNUM_CLUSTER=a\nAUTOSCALER_MAGNUM_GROUPS=w\nAUTOSCALER_MAGNUM_ARCH=amd 64\n", "AUTOSCALER_MAGNUM_ARCH"}, {"AUTOSCALER_PROVIDER=magnum\nAUTOSCALER_MAGNUM_CLUSTER=a\nAUTOSCALER_MAGNUM_AUTO_DISCOVERY=role=w\n", "AUTOSCALER_MAGNUM_AUTO_DISCOVERY"},
		{"AUTOSCALER_PROVIDER=clusterapi\nAUTOSCALER_CLUSTERAPI_CLUSTER_NAME=a\nAUTOSCALER_CLUSTERAPI_GROUP=cluster.x-k8s.io/v1beta1\n", "AUTOSCALER_CLUSTERAPI_GROUP"}, {"AUTOSCALER_PROVIDER=clusterapi\nAUTOSCALER_CLUSTERAPI_AUTO_DISCOVERY=namespace\n", "AUTOSCALER_CLUSTERAPI_AUTO_DISCOVERY"},
		{"AUTOSCALER_PROVIDER=clusterapi\nAUTOSCALER_CLUSTERAPI_CLUSTER_NAME=a\nAUTOSCALER_CLUSTERAPI_MARK_LEAD=2m\n", "AUTOSCALER_CLUSTERAPI_MARK_LEAD"}, {"AUTOSCALER_PROVIDER=clusterapi\nAUTOSCALER_CLUSTERAPI_CLUSTER_NAME=a\nAUTOSCALER_CLUSTERAPI_SCALE_ZERO_DEFAULT_ARCH=x86\n", "AUTOSCALER_CLUSTERAPI_SCALE_ZERO_DEFAULT_ARCH"},
		{"AUTOSCALER_PROVIDER=externalgrpc\nAUTOSCALER_EXTERNALGRPC_ADDRESS=unix:/run/x\n", "AUTOSCALER_EXTERNALGRPC_INSECURE=true"}, {"AUTOSCALER_PROVIDER=externalgrpc\nAUTOSCALER_EXTERNALGRPC_ADDRESS=plugin\nAUTOSCALER_EXTERNALGRPC_INSECURE=true\n", "AUTOSCALER_EXTERNALGRPC_ADDRESS"},
		{"AUTOSCALER_PROVIDER=externalgrpc\nAUTOSCALER_EXTERNALGRPC_ADDRESS=plugin.example:1\nAUTOSCALER_EXTERNALGRPC_INSECURE=true\n", "is not on this machine"}, {"AUTOSCALER_PROVIDER=externalgrpc\nAUTOSCALER_EXTERNALGRPC_ADDRESS=localhost:1\nAUTOSCALER_EXTERNALGRPC_INSECURE=true\nAUTOSCALER_EXTERNALGRPC_TIMEOUT=-1s\n", "AUTOSCALER_EXTERNALGRPC_TIMEOUT"},
		{"AUTOSCALER_PROVIDER=externalgrpc\nAUTOSCALER_EXTERNALGRPC_ADDRESS=localhost:1\nAUTOSCALER_EXTERNALGRPC_CLOUD_CONFIG=/does/not/exist\nAUTOSCALER_EXTERNALGRPC_INSECURE=true\n", "AUTOSCALER_EXTERNALGRPC_CLOUD_CONFIG"},
		// The services.
		setting("CSR_ENABLED", "1x"), setting("CSR_EXTRA_NAMES", "{{host}}.example"), setting("CSR_SERVICE_CIDRS", "10.96.0.0"), setting("CSR_ALLOWED_RANGES", "everything"), setting("CSR_MAX_EXPIRATION", "1y"), setting("CSR_JOIN", "true"), setting("CSR_PER_NODE_HOUR", "0"),
		setting("NODECLEANER_SIGHT_INTERVAL", "0s"), setting("NODECLEANER_GONE_GRACE", "-1s"), setting("NODECLEANER_SENT_GRACE", "-1s"), setting("NODECLEANER_KNOWN_FOR", "-1s"), setting("NODECLEANER_FREEZE_FOR", "-1s"), setting("NODECLEANER_OBSERVE_FIRST", "-24h"), setting("NODECLEANER_MAX_SHARE", "20%"),
		setting("NODECLEANER_MODE", "Delete"), setting("NODECLEANER_CLOUD_CONTROLLER", "yes"), setting("NODECLEANER_DETACH_FOR", "-6m"),
		setting("BOOTSTRAP_FILE", "worker.env"), setting("BOOTSTRAP_TOKENS", "forever"), setting("BOOTSTRAP_TOKEN_TTL", "0s"), setting("BOOTSTRAP_TOKEN_TTL", "24"), setting("BOOTSTRAP_TOKEN_MAX_AGE", "-1s"), setting("BOOTSTRAP_TOKEN_GROUPS", "system:masters"), setting("BOOTSTRAP_ENDPOINT", "api.example.com"),
		setting("BOOTSTRAP_ENDPOINT", "https://api.example.com:6443"), setting("BOOTSTRAP_SSM_PARAMETER", "join"), {"AUTOSCALER_BOOTSTRAP_TOKEN_GROUPS=system:bootstrappers:kubeadm:default-node-token\n", "AUTOSCALER_CSR_JOIN"},
		{"AUTOSCALER_AWS_REGION=eu-west-1\nAUTOSCALER_BOOTSTRAP_ATTEST_LISTEN=:6444\nAUTOSCALER_BOOTSTRAP_ATTEST_ROLES=worker\n", "AUTOSCALER_BOOTSTRAP_ATTEST_ACCOUNT"}, {"AUTOSCALER_AWS_REGION=eu-west-1\nAUTOSCALER_BOOTSTRAP_ATTEST_LISTEN=:6444\nAUTOSCALER_BOOTSTRAP_ATTEST_ACCOUNT=123456789012\n", "AUTOSCALER_BOOTSTRAP_ATTEST_ROLES"},
		{"AUTOSCALER_BOOTSTRAP_ATTEST_LISTEN=:6444\nAUTOSCALER_BOOTSTRAP_ENABLED=false\n", "set AUTOSCALER_BOOTSTRAP_ENABLED=true"}, {"AUTOSCALER_BOOTSTRAP_ATTEST_LISTEN=:6444\nAUTOSCALER_CSR_JOIN=open\n", "AUTOSCALER_CSR_JOIN=closed"},
		// Further ones: CRLF, byte order marks, ranges, other programs' forms.
		{"\ufeffAUTOSCALER_LISTEN=off\r\n", "byte order mark"}, {"AUTOSCALER_LISTEN=nowhere\r\n", "AUTOSCALER_LISTEN"}, {"\r\n\r\nAUTOSCALER_LISTN=off\r\n", "did you mean AUTOSCALER_LISTEN?"}, {"AUTOSCALER_LISTEN='nowhere'\r\n", "AUTOSCALER_LISTEN"},
		{"AUTOSCALER_LISTEN=off\\\nAUTOSCALER_LOG_LEVEL=info\n", "AUTOSCALER_LISTEN"}, {"AUTOSCALER_SCALING_EXPANDER=price,\n", "AUTOSCALER_SCALING_EXPANDER"}, {"AUTOSCALER_LISTEN:=off\n", ""}, {"AUTOSCALER_LISTEN+=off\n", ""},
		{"unset AUTOSCALER_LISTEN\n", "NAME=VALUE"}, {"$AUTOSCALER_LISTEN=off\n", ""}, {"[Service]\n", "NAME=VALUE"}, {"Environment=AUTOSCALER_LISTEN=off\nAUTOSCALER_LOG_LEVEL=loud\n", "AUTOSCALER_LOG_LEVEL"}, {"AUTOSCALER_LISTEN=\"off\n", "line break"},
		setting("LISTEN", "[::1"), setting("LISTEN", "0:65536"), setting("LISTEN", "off "+"off"), setting("SCALER_IDLE", "-30s"), setting("SCALER_IDLE", "1e3s"), setting("SCALER_CAP", "0"), setting("LOG_LEVEL", "INFO,"),
		setting("PROVIDER", ","), setting("PROVIDER", "asg,"), setting("KUBELET_MAX_PODS", "0110"), setting("SCALING_MAX_EMPTY_AT_ONCE", "0b1"), setting("SCALING_MAX_NODES_TOTAL", "0x10"), setting("SCALING_UTILIZATION_THRESHOLD", "+-1"), setting("KUBELET_MAX_PODS", "2147483648"), setting("SCALING_CONSOLIDATE_SAVING", "1.0001"),
		setting("PRICES", "free"), setting("PRICES", "computed,told"), setting("STATE_DIR", "/var/lib/../lib/\x7f"), setting("OBSERVE_STALE_AFTER", "forever"),
		{"--regional=true\n", "GCE only"}, {"--leader-elect=true\n", "by a Lease"}, {"AUTOSCALER_FEATURE_GATES=x\n", "there are none"}, {"SCALE_DOWN_DELAY_AFTER_DELETE=1m\n", "the next round sees"},
	}
}

// badGroups are texts of groups.yaml and what the one line about them says.
var badGroups = [][2]string{
	{"\ufeffgroups: {a: {prise: 1}}", "did you mean price?"}, {"groups: {a: {price: 1}}\r\nheadrom: []\r\n", "headrom"}, {"groups: {a: {price: 1e400}}", "groups"}, {"groups: {a: {priority: 0x}}", "whole number"}, {"GROUPS: {}", "groups"},
	{"headroom: [{name: a, cpu: 1, schedule: [{hours: '24:00-25:00'}]}]", "07:30-19:00"}, {"groups: {a: {options: {scaleDownUnneededTime: 10d}}}", "scaleDownUnneededTime"}, {"{\"groups\": {\"a\": {\"prise\": 1}}}", "did you mean price?"},
	{"groups: [", "YAML"}, {"groups: {a: {prise: 1}}", "did you mean price?"}, {"groups: {a: {price: -1}}", "price"}, {"groups: {a: {pause: perhaps}}", "pause"},
	{"groups: {a: {options: {scaleDownUtilizationThreshold: 5}}}", "scaleDownUtilizationThreshold"}, {"groups: {a: {min: 1}}", "min"}, {"gruops: {}", "gruops"},
	{"headroom: [{cpu: 1}]", "name"}, {"headroom: [{name: a}]", "how much"}, {"headroom: [{name: a, cpu: 1, schedule: [{timeZone: Mars/X}]}]", "Mars/X"},
	{"groups: {a: {}, a: {}}", "already"}, {"machines: [{nod: x}]", "machines"},
	{"groups: []", "write a mapping"}, {"groups: {a: 3}", "write a mapping"}, {"groups: {a: {price: cheap}}", "0.192"}, {"groups: {a: {price: .nan}}", "groups"}, {"groups: {a: {price: .inf}}", "groups"}, {"groups: {a: {priority: 1.5}}", "whole number"},
	{"groups: {a: {priority: -1}}", "whole number"}, {"groups: {a: {balance: [b]}}", "write a text"}, {"groups: {a: {max: 9}}", "kept by the cloud"}, {"groups: {'a[': {}}", "close the bracket"}, {"groups: {a: {pause: 2026-12-24}}", "2026-12-24T18:00:00Z"},
	{"groups: {a: {pause: {til: x}}}", "did you mean until?"}, {"groups: {a: {pause: {until: noon}}}", "groups.a.pause.until"}, {"groups: {a: {pause: 3}}", "write a mapping"},
	{"groups: {a: {options: {scaleDownUnneededTime: 10}}}", "10m"}, {"groups: {a: {options: {maxNodeStartupTime: -1m}}}", "maxNodeStartupTime"}, {"groups: {a: {options: {ignoreDaemonSetsUtilization: 1}}}", "true or false"}, {"groups: {a: {options: {scaleDownUtilizationThreshold: 50%}}}", "0.5"}, {"groups: {a: {option: {}}}", "did you mean options?"},
	{"groups: {a: {template: {label: {a: b}}}}", "did you mean labels?"}, {"groups: {a: {template: {labels: [a]}}}", "write a mapping"}, {"groups: {a: {template: {labels: {'a b': c}}}}", "cannot be the key of a label"}, {"groups: {a: {template: {labels: {a: 'b c'}}}}", "cannot be the value of a label"}, {"groups: {a: {template: {labels: {a: {b: c}}}}}", "write a text"},
	{"groups: {a: {template: {taints: gpu}}}", "write a list"}, {"groups: {a: {template: {taints: [gpu]}}}", "key=value:NoSchedule"}, {"groups: {a: {template: {taints: ['a=b:Never']}}}", "key=value:NoSchedule"}, {"groups: {a: {template: {taints: ['a b:NoSchedule']}}}", "cannot be the key of a taint"},
	{"groups: {a: {template: {capacity: {mem: 1Gi}}}}", "did you mean memory?"}, {"groups: {a: {template: {capacity: {cores: 4}}}}", "did you mean cpu?"}, {"groups: {a: {template: {capacity: {gpu: 4}}}}", "did you mean nvidia.com/gpu?"}, {"groups: {a: {template: {capacity: {memory: 16}}}}", "16Gi"}, {"groups: {a: {template: {capacity: {memory: 16GB}}}}", "16Gi"},
	{"groups: {a: {template: {capacity: {cpu: -4}}}}", "below zero"}, {"groups: {a: {template: {capacity: {cpu: 1e999}}}}", "groups"}, {"groups: {a: {template: {capacity: {pods: many}}}}", "capacity.pods"}, {"groups: {a: {template: {capacity: {kubernetes.io/x: 1}}}}", "nvidia.com/gpu"},
	{"groups: {a: {price: 1}}\n---\ngroups: {b: {price: 2}}\n", "a second document"}, {"\tgroups: {}", "YAML"}, {"groups: {a: *missing}", "YAML"}, {"groups: {a: {price: 1}\n", "YAML"}, {"just text", "write a mapping"}, {"[1, 2]", "write a mapping"}, {"groups: !!binary x", "groups"},
	{"groups: {'': {price: 1}}", "the name of a group is empty"}, {"groups:\n\ta: {price: 1}\n", "not with tabs"}, {"groups: &a {b: *a}", "contains itself"}, {"groups: {a: &a {price: 1}, b: {<<: *a, prise: 2}}", "did you mean price?"}, {"groups: {a: {price: -.inf}}", "a finite number"},
	{"a: &a [x,x,x,x,x,x,x,x,x]\nb: &b [*a,*a,*a,*a,*a,*a,*a,*a,*a]\nc: &c [*b,*b,*b,*b,*b,*b,*b,*b,*b]\nd: &d [*c,*c,*c,*c,*c,*c,*c,*c,*c]\ne: &e [*d,*d,*d,*d,*d,*d,*d,*d,*d]\nf: &f [*e,*e,*e,*e,*e,*e,*e,*e,*e]\ng: [*f,*f,*f,*f,*f,*f,*f,*f,*f]\n", "excessive aliasing"},
	{"groups: {a\x00: {}}", "control characters"}, {"groups: {caf\xe9: {}}", "UTF-8"}, {"groups:\r\n  a:\r\n    prise: 1\r\n", ":3: groups.a.prise"}, {"%YAML 9.9\n---\ngroups: {}\n", "YAML"}, {"groups: {[a]: {}}", "YAML"}, {"groups: {a: {price: 1, price: 2}}", "already"}, {"groups: {a: {price: }}", "0.192"},
	{"groups: {a: {priority: 99999999999999999999}}", "whole number"}, {"groups: {a: {template: {capacity: {memory: 99999999999999999Gi}}}}", "too large"}, {"groups: {a: {template: {capacity: {pods: 1.5}}}}", "is no whole number"}, {"groups: {a: {template: {capacity: {nvidia.com/gpu: 500m}}}}", "is no whole number"}, {"groups: {a: {template: {labels: {x: true}}}}", "write a text"},
	{"headroom: [{name: a, cpu: .nan}]", "a finite number"}, {"headroom: [{name: a, nodes: {count: -3, group: w}}]", "headroom[0].nodes.count"}, {"headroom: [{name: a, nodes: {count: 1000000000, group: w}}]", "up to 100000"}, {"headroom: [{name: a, pods: {count: 1000000000, cpu: 1}}]", "up to 100000"},
	{"headroom: [{name: a, cpu: 1, schedule: [{hours: '08:00–18:00'}]}]", "07:30-19:00"}, {"headroom: [{name: a, cpu: 1, schedule: [{timeZone: ../../etc/passwd}]}]", "Europe/Berlin"}, {"machines: [{instance: a, node: a, addresses: [10.0.0.1/24]}]", "machines[0].addresses[0]"},
	{"headroom: {name: a}", "write a list"}, {"headroom: [{name: a, cpu: 1, pods: {count: 1}}]", "in one way"}, {"headroom: [{name: a, cpu: 0}]", "at least one"}, {"headroom: [{name: a, memory: 8}]", "8Gi"}, {"headroom: [{name: a, cpu: 1}, {name: a, cpu: 2}]", "twice"},
	{"headroom: [{name: a, pods: {count: 0, cpu: 1}}]", "how many pods"}, {"headroom: [{name: a, pods: {count: 1, gpu: 1}}]", "nvidia.com/gpu"}, {"headroom: [{name: a, nodes: {count: 1}}]", "group: workers"}, {"headroom: [{name: a, nodes: {count: 1, group: w, size: 3}}]", "no such field"},
	{"headroom: [{name: a, cpu: 1, schedule: [{days: someday}]}]", "mon-fri"}, {"headroom: [{name: a, cpu: 1, schedule: [{hours: 8-18}]}]", "07:30-19:00"}, {"headroom: [{name: a, cpu: 1, schedule: [{hours: '08:00-08:00'}]}]", "no length"}, {"headroom: [{name: a, cpu: 1, schedule: [{hours: '25:00-26:00'}]}]", "07:30-19:00"}, {"headroom: [{name: a, cpu: 1, schedule: {days: mon}}]", "write a list"},
	{"headroom: [{name: a, cpu: 1, tolerations: [{operator: In}]}]", "Exists or Equal"}, {"headroom: [{name: a, cpu: 1, tolerations: [{effect: Always}]}]", "NoSchedule"}, {"headroom: [{name: a, cpu: 1, nodeSelector: {a: 'b c'}}]", "cannot be the value of a label"},
	{"machines: {a: b}", "a list of machines"}, {"machines: [{instance: a, node: 'A B'}]", "machines[0].node"}, {"machines: [{instance: a, node: a, addresses: [here]}]", "machines[0].addresses[0]"}, {"machines: [{instance: a, node: a}, {instance: a, node: b}]", "already"}, {"machines: [{instance: a, node: a, names: ['*']}]", "machines[0].names[0]"},
	{"externalgrpc: {instances: [{id: a, node: a}]}", "write instance"}, {"externalgrpc: {instances: [{instance: a, node: A}]}", "lower case"}, {"externalgrpc: {instances: {a: b}}", "a list of"},
	{"groups: {w: {template: {labels: {kubernetes.io/hostname: a}}}}", "leave it out"}, {"groups: {w: {template: {taints: ['a=b:NoSchedule', 'a=c:NoSchedule']}}}", "a second taint a"}, {"groups: {w: {template: {capacity: {cpu: 0}}}}", "no machine is without cpu"}, {"groups: {w: {template: {capacity: {memory: 0}}}}", "no machine is without memory"},
	{"headroom: [{name: a, pods: {count: 3}}]", "say how large one pod is"}, {"headroom: [{name: a, pods: {count: 3, cpu: 0}}]", "say how large one pod is"}, {"groups: {w: {options: {maxNodeAge: 1m}}}", "1h0m0s or more"}, {"groups: {w: {options: {repairAfter: 1s}}}", "1m0s or more"}, {"groups: {w: {balance: n}}", "quotes"},
	{"nova: {groups: [{name: w, flavor: f, image: i, networks: [a, n], max: 1, userdata: /u}]}", "nova.groups[0].networks[1]: write a text, not false"}, {"nova: {groups: [{name: w, flavor: off, image: i, networks: [a], max: 1, userdata: /u}]}", "nova.groups[0].flavor: write a text, not false"}, {"nova: {groups: [{name: w, flavor: f, image: 2026, networks: [a], max: 1, userdata: /u}]}", "put quotes around it"},
	{"nova: {groups: [{name: w, flavor: f, image: i, networks: [a], max: 1, userdata: /u, labels: {kubernetes.io/hostname: a}}]}", "leave it out"}, {"nova: {groups: [{name: w, flavor: f, image: i, networks: [a], max: 1, userdata: /u, taints: ['a:NoExecute', 'a=b:NoExecute']}]}", "a second taint"}, {"nova: {groups: [{name: w, flavor: f, image: i, networks: [a], max: yes, userdata: /u}]}", "write a whole number, not true"},
	{"nova: [a]", "write a mapping"}, {"nova: {group: []}", "no such field"}, {"nova: {groups: [{name: W, flavor: f, image: i, networks: [net], max: 1, userdata: /u}]}", "nova.groups[0].name"}, {"nova: {groups: [{name: w, image: i, networks: [net], max: 1, userdata: /u}]}", "nova.groups[0].flavor"},
	{"nova: {groups: [{name: w, flavor: f, networks: [net], max: 1, userdata: /u}]}", "nova.groups[0].image"}, {"nova: {groups: [{name: w, flavor: f, image: i, max: 1, userdata: /u}]}", "nova.groups[0].networks"}, {"nova: {groups: [{name: w, flavor: f, image: i, networks: [net], min: 3, max: 1, userdata: /u}]}", "nova.groups[0].max"},
	{"nova: {groups: [{name: w, flavor: f, image: i, networks: [net], max: 1, userdata: u}]}", "nova.groups[0].userdata"}, {"nova: {groups: [{name: w, flavor: f, image: i, networks: [net], max: 1, userdata: /u, labels: {'a b': c}}]}", "cannot be the key of a label"}, {"nova: {groups: [{name: w, flavor: f, image: i, networks: [net], max: lots, userdata: /u}]}", "whole number"},
}

// badCommands are command lines, their exit codes and what the one line says. /does/not/exist
// and the directory of this test stand for files; every command that would need a cluster has
// a kubeconfig that is not there.
var badCommands = []struct {
	line string
	code int
	want string
}{
	{"statsu", exitUsage, "did you mean status?"}, {"stop", exitUsage, "there is no command"}, {"status now", exitUsage, "one argument too many"}, {"status --json", exitUsage, "there is no flag --json"}, {"status -o jsn", exitUsage, "use table, json or yaml"}, {"status -o", exitUsage, "--help"},
	{"status --socket", exitUsage, "--help"}, {"status --socket /does/not/exist", exitFailed, "no agent answers on /does/not/exist"}, {"status --record", exitUsage, "--help"}, {"plan --dry-run", exitUsage, "there is no flag"}, {"plan pod", exitUsage, "one argument too many"}, {"run now", exitUsage, "one argument too many"}, {"run --daemon", exitUsage, "there is no flag"},
	{"check --ofline", exitUsage, "did you mean --offline?"}, {"check --offline=perhaps", exitUsage, "perhaps"}, {"check everything", exitUsage, "one argument too many"},
	{"explain", exitUsage, "say what"}, {"explain pod", exitUsage, "say what"}, {"explain queen x", exitUsage, "say what"}, {"explain pod a b", exitUsage, "say what"}, {"explain pods/", exitUsage, "say what"}, {"explain --socket /does/not/exist pod a --output text", exitUsage, "use table, json or yaml"},
	{"node restore", exitUsage, "say which node"}, {"node restroe a", exitUsage, "did you mean restore?"}, {"node restore a --state-dir /does/not/exist", exitFailed, "name the agent's state directory with --state-dir"}, {"node restore a b", exitUsage, ""},
	{"replay", exitUsage, "say which file"}, {"replay /does/not/exist", exitFailed, "no such file"}, {"replay DIR", exitFailed, ""}, {"replay DIR/garbage", exitFailed, ""}, {"replay DIR/garbage --policy UNNEEDED", exitUsage, "replay"},
	{"iam-policy root", exitUsage, "use leader or worker"}, {"completion tcsh", exitUsage, "bash, zsh or fish"}, {"completion", exitUsage, "bash, zsh or fish"}, {"token", exitUsage, "Usage:"}, {"token revoke", exitUsage, ""}, {"token create --for tomorrow", exitUsage, "a time with its unit"}, {"token crate", exitUsage, "did you mean create?"},
	{"userdata", exitUsage, "Usage:"}, {"userdata rendr", exitUsage, "did you mean render?"}, {"userdata render --max-pods many", exitUsage, "whole number"}, {"userdata render --join-file /does/not/exist", exitFailed, "/does/not/exist"}, {"userdata render --format docker --join-file DIR/worker.env", exitUsage, "ignition"},
	{"userdata render --os windows --join-file DIR/worker.env", exitUsage, "flatcar"}, {"userdata render --arch mips --join-file DIR/worker.env", exitUsage, "amd64"}, {"userdata render --label a --join-file DIR/worker.env", exitUsage, "key=value"}, {"userdata render --taint a --join-file DIR/worker.env", exitUsage, ":NoSchedule"},
	{"leader-config --endpoint k8s.example.net:6443 --kubernetes-version latest", exitUsage, "--kubernetes-version"},
	{"leader-config --endpoint k8s.example.net:6443 --kubernetes-version 1", exitUsage, "--kubernetes-version"},
	{"leader-config --endpoint k8s.example.net:6443 --kubernetes-version v", exitUsage, "--kubernetes-version"},
	{"leader-config --endpoint k8s.example.net:6443 --kubernetes-version abc", exitUsage, "--kubernetes-version"},
	{"leader-config --endpoint k8s.example.net:6443 --kubernetes-version v1", exitUsage, "--kubernetes-version"},
	{"leader-config --endpoint k8s.example.net:6443 --kubernetes-version x9", exitUsage, "--kubernetes-version"},
	{"leader-config --endpoint k8s.example.net:6443 --kubernetes-version v1.36", exitUsage, "--kubernetes-version"},
	{"leader-config --endpoint k8s.example.net:6443 --kubernetes-version v1.-1.0", exitUsage, "--kubernetes-version"},
	{"leader-config --endpoint k8s.example.net:6443 --kubernetes-version v1.36.999999", exitUsage, "--kubernetes-version"},
	{"leader-config --endpoint k8s.example.net:6443 --kubernetes-version latest --format kubeadm", exitUsage, "--kubernetes-version"}, {"leader-config --endpoint k8s.example.net:6443 --kubernetes-version latest --format downloads", exitUsage, "--kubernetes-version"},
	{"leader-config --endpoint k8s.example.net:6443 --kubernetes-version v1.36.3 --before-init DIR/broken.sh", exitFailed, "DIR/broken.sh has a fault of syntax"},
	{"userdata render --join-file DIR/worker.env --before-join DIR/broken.sh", exitFailed, "DIR/broken.sh has a fault of syntax"}, {"userdata render --join-file DIR/worker.env --max-pods 100000", exitUsage, "--max-pods is \"100000\": write"},
	{"iam-policy --groups a,,b", exitUsage, "--groups is \"a,,b\", which has an empty element"}, {"iam-policy --cluster a --launch-template workers", exitUsage, "--launch-template is \"workers\": write the ID"},
	{"leader-config --endpoint k8s.example.net:6443 --kubernetes-version v1.36.3 --cloud-controller aws", exitUsage, "needs --node-name"},
	{"userdata render --endpoint nowhere --join-file DIR/worker.env", exitUsage, "host:port"}, {"userdata render --kubernetes-version 9 --join-file DIR/worker.env", exitUsage, "version"}, {"userdata render --cloud azure --join-file DIR/worker.env", exitUsage, "openstack"}, {"userdata render --out /does/not/exist/worker.sh --join-file DIR/worker.env", exitFailed, "/does/not/exist"},
	{"userdata render -o json --join-file DIR/worker.env", exitUsage, "./json"}, {"leader-config -o yaml", exitUsage, "name a file"},
	{"userdata render --out /proc/worker.sh --join-file DIR/worker.env", exitFailed, "/proc"}, {"userdata render --out DIR --join-file DIR/worker.env", exitFailed, ""}, {"userdata render --before-join /does/not/exist --join-file DIR/worker.env", exitFailed, "/does/not/exist"}, {"userdata render --join-file DIR/garbage", exitFailed, ""}, {"userdata render --join-file DIR", exitFailed, "DIR"},
	{"userdata lint", exitUsage, ""}, {"userdata lint /does/not/exist", exitFailed, "no such file"}, {"userdata lint DIR", exitFailed, "directory"}, {"userdata downloads --kubernetes-version v1.36.3 --arch mips", exitUsage, "amd64"}, {"userdata downloads", exitUsage, "version"},
	{"run --env-file /does/not/exist", exitConfig, "agent.env.example"}, {"run --env-file DIR", exitConfig, "DIR"}, {"run --env-file DIR/garbage", exitConfig, "UTF-8"}, {"plan --env-file /does/not/exist", exitFailed, "agent.env.example"}, {"plan --env-file DIR/good.env", exitFailed, "/does/not/exist"}, {"token list --env-file DIR/good.env", exitFailed, "/does/not/exist"},
	{"run --env-file DIR/good.env", exitFailed, "/does/not/exist"}, {"run --env-file DIR/groups.env", exitConfig, "DIR/groups.yaml"}, {"run --env-file DIR/groupsdir.env", exitConfig, "is a directory"},
	{"install --set AUTOSCALER_LISTEN", exitUsage, "NAME=VALUE"}, {"install --set PATH=x", exitUsage, ""}, {"install --kubeconfig /does/not/exist", exitFailed, ""}, {"install --force", exitUsage, "there is no flag"}, {"uninstall everything", exitUsage, "one argument too many"},
	{"run --env-file DIR/pipe", exitConfig, "a named pipe"}, {"run --env-file DIR/loop", exitConfig, "too many levels"}, {"run --env-file /dev/zero", exitConfig, "is it the right file?"}, {"run --env-file DIR/pipegroups.env", exitConfig, "a named pipe"},
	{"run --env-file DIR/filestate.env", exitConfig, "that is no directory"}, {"run --env-file DIR/loopstate.env", exitConfig, "that is no directory"}, {"run --env-file DIR/belowstate.env", exitConfig, "that is no directory"},
	{"run --env-file DIR/pipekube.env", exitFailed, "a named pipe"}, {"plan --env-file DIR/garbagekube.env", exitFailed, "AUTOSCALER_KUBECONFIG"}, {"token list --env-file DIR/awaykube.env", exitFailed, "does not answer"}, {"plan --env-file DIR/awaykube.env", exitFailed, "does not answer"}, {"plan --env-file DIR/execkube.env", exitFailed, "not-there not found"},
	{"replay DIR/pipe", exitFailed, "a named pipe"}, {"replay DIR/empty", exitFailed, "the file is empty"}, {"replay /dev/zero", exitFailed, "is no recording"}, {"userdata lint DIR/pipe", exitFailed, "a named pipe"}, {"userdata lint /dev/zero", exitFailed, "is it the right file?"}, {"userdata lint --cloud azure DIR/worker.env", exitUsage, "--cloud is \"azure\""},
	{"userdata lint --os windows DIR/worker.env", exitUsage, "--os is \"windows\""}, {"userdata lint --kubernetes-version latest DIR/worker.env", exitUsage, "v1.36.3"}, {"userdata render --join-file DIR/pipe", exitFailed, "a named pipe"}, {"userdata downloads --kubernetes-version v1.999.0", exitUsage, "newer"}, {"userdata downloads --kubernetes-version v1.36.3 --versions DIR", exitFailed, "is a directory"},
	{"userdata downloads --kubernetes-version v1.36.3 -o xml", exitUsage, "use table, json or yaml"}, {"token create --for=-1h --env-file DIR/awaykube.env", exitUsage, ""}, {"token revoke asa003 -o xml", exitUsage, "use table, json or yaml"}, {"version -o JSON", exitUsage, "use table, json or yaml"}, {"version -o json -o xml", exitUsage, "use table, json or yaml"}, {"🚀", exitUsage, "there is no command"},
	{"iam-policy leader --cluster a --partition moon", exitUsage, "aws-cn"}, {"iam-policy leader", exitUsage, "--cluster"}, {"iam-policy worker", exitUsage, "--parameter"}, {"leader-config", exitUsage, "--endpoint"}, {"leader-config --endpoint k8s.example.net:6443 --kubernetes-version v1.36.3 --pod-subnet 10.0.0.0/99", exitUsage, "--pod-subnet"}, {"leader-config --endpoint k8s.example.net:6443 --kubernetes-version v1.36.3 --out DIR", exitFailed, "DIR"},
	{"install --dry-run --set AUTOSCALER_LISTN=off", exitUsage, "AUTOSCALER_LISTN"}, {"status --socket DIR", exitFailed, "is no socket"}, {"status --html /does/not/exist/day.html --socket DIR/none.sock", exitFailed, "no agent answers"}, {"reload --socket DIR/none.sock", exitFailed, "no agent answers"}, {"node restore x --state-dir DIR/worker.env", exitFailed, "not a directory"},
	{"check --groups /does/not/exist", exitFailed, ""}, {"check --groups DIR --offline", exitUsage, "exclude each other"},
	{"plan --env-file DIR/dirkube.env", exitFailed, "DIR"}, {"token list --env-file DIR/dirkube.env", exitFailed, "DIR"}, {"install --set AUTOSCALER_LISTEN=nowhere", exitUsage, "AUTOSCALER_LISTEN is"}, {"install --set =x", exitUsage, ""}, {"install --set AUTOSCALER_SCALER_IDLE=30", exitUsage, "AUTOSCALER_SCALER_IDLE is"},
	{"leader-config --endpoint k8s.example.net:6443 --kubernetes-version v1.36.3 --network weave", exitUsage, "flannel"}, {"leader-config --endpoint k8s.example.net:6443 --kubernetes-version v1.36.3 --pod-subnet fd00::/48", exitUsage, "--service-subnet: "}, {"leader-config --endpoint k8s.example.net:6443 --kubernetes-version v1.36.3 --before-init DIR", exitFailed, "DIR"},
	{"leader-config --endpoint [fd00::1]:99999 --kubernetes-version v1.36.3", exitUsage, "endpoint"}, {"replay DIR/garbage --explain queen/x", exitUsage, "KIND/NAME"}, {"token create --for 100h", exitUsage, "48h"}, {"token revoke a b", exitUsage, "say which token"}, {"userdata render --max-pods -1 --join-file DIR/worker.env", exitUsage, "--max-pods is "},
	{"node restore a --uid", exitUsage, "--uid"}, {"check --output yml", exitUsage, "table, json or yaml"},
	{"leader-config --endpoint k8s.example.net:6443 --kubernetes-version v1.36.3 --pod-subnet 10.244.0.1/16", exitUsage, "write the network of that address, 10.244.0.0/16"}, {"leader-config --endpoint k8s.example.net:6443 --kubernetes-version v1.36.3 --before-init DIR/empty", exitFailed, "is empty: write a script"},
	{"leader-config --join --format values --kubernetes-version v1.36.3 --endpoint k8s.example.net:6443", exitUsage, "--endpoint changes nothing"}, {"leader-config --endpoint k8s.example.net:6443 --kubernetes-version v1.36.3 -o DIR", exitFailed, "it is a directory: name a file"},
	{"userdata render --join-file DIR/worker.env --before-join DIR/empty", exitFailed, "is empty: write a script"}, {"userdata render --join-file DIR/bom.env", exitFailed, "byte order mark"},
	{"userdata render --join-file DIR/twice.env", exitFailed, "JOIN_ENDPOINT is given twice"}, {"token revoke ABC --env-file DIR/awaykube.env", exitUsage, "no ID of a token"}, {"token revoke asa003.x.y --env-file DIR/awaykube.env", exitFailed, ""},
	{"leader-config --endpoint k8s.example.net:6443 --kubernetes-version v1.36.3 --mirror ,", exitUsage, "--mirror is empty"}, {"leader-config --endpoint 0.0.0.0:6443 --kubernetes-version v1.36.3", exitUsage, "an address of no machine"}, {"leader-config --endpoint 10.0.0.256:6443 --kubernetes-version v1.36.3", exitUsage, "host:port, for example"},
	{"leader-config --endpoint [::]:6443 --kubernetes-version v1.36.3", exitUsage, "an address of no machine"}, {"leader-config --endpoint k8s.example.net:6443 --kubernetes-version v1.36.3 --advertise-address fe80::1", exitUsage, "--advertise-address: "}, {"leader-config --endpoint k8s.example.net:6443 --kubernetes-version v1.36.3 --advertise-address 224.0.0.1", exitUsage, "--advertise-address: "},
	{"userdata render --join-file DIR/worker.env --endpoint 0.0.0.0:6443", exitUsage, "an address of no machine"}, {"leader-config --endpoint k8s.example.net:6443 --kubernetes-version v1.36.3 --cert-san 10.0.0.999", exitUsage, "a DNS name or an address"},

	// A file that is named and cannot be read, what is no socket, names that AWS or kubeadm refuse.
	{"status --env-file /does/not/exist", exitFailed, "configuration: read environment file"}, {"status --env-file DIR", exitFailed, "configuration: read environment file"}, {"explain pod a --env-file DIR/garbage/x", exitFailed, "not a directory"},
	{"rollout status --env-file DIR/pipe", exitFailed, "a named pipe"}, {"rollout pause --all --env-file /does/not/exist", exitFailed, "agent.env.example"}, {"nodes --env-file DIR/loop", exitFailed, "too many levels"},
	{"reload --env-file DIR", exitFailed, "configuration: read environment file"}, {"status --socket DIR/worker.env", exitFailed, "is no socket"}, {"status --socket DIR/pipe", exitFailed, "is no socket"},
	{"reload --socket DIR/empty", exitFailed, "is no socket"}, {"status --html DIR/day.html --socket DIR/garbage", exitFailed, "is no socket"}, {"status --record DIR/r.gz --socket DIR/empty", exitFailed, "is no socket"},
	{"userdata render --shared-token --join-file DIR/worker.env", exitUsage, "only --cloud openstack uses it"},
	{"userdata render --cloud aws --shared-token --join-file DIR/worker.env", exitUsage, "only --cloud openstack uses it"}, {"userdata render --endpoint K8S.example.net:6443 --join-file DIR/worker.env", exitUsage, "write k8s.example.net:6443"}, {"leader-config --endpoint K8s.Example.Net:6443 --kubernetes-version v1.36.3", exitUsage, "write k8s.example.net:6443"},
	{"leader-config --endpoint k8s.example.net:6443 --kubernetes-version v1.36.3 --cert-san API.example.net", exitUsage, "lower-case DNS name"}, {"leader-config --join --endpoint K8S:6443 --kubernetes-version v1.36.3", exitUsage, "endpoint"}, {"iam-policy --cluster a,b", exitUsage, "a name without blanks, commas"},
	{"iam-policy --cluster a=b", exitUsage, "no spaces, commas or equal signs"}, {"iam-policy leader --cluster a --parameter join", exitUsage, "begins with a slash"}, {"iam-policy worker --parameter clusters/join", exitUsage, "begins with a slash"},
	{"iam-policy --cluster ccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccc", exitUsage, "at most 102 bytes"}, {"userdata render --join-file DIR/worker.env --checksum kubelet/amd64=abc", exitUsage, "64 lower-case hex digits"}, {"userdata render --join-file DIR/worker.env --registry-mirror registry.k8s.io", exitUsage, "KEY=VALUE"},
	{"userdata render --join-file DIR/worker.env --registry-mirror a.io=https://a --registry-mirror a.io=https://b", exitUsage, "a.io is given twice"}, {"userdata render --join-file DIR/worker.env --label a=b --label a=c", exitUsage, "label a is given twice"}, {"userdata render --join-file DIR/worker.env --taint a=b:NoSchedule --taint a=c:NoSchedule", exitUsage, "keep one"},
	{"userdata render --join-file DIR/worker.env --kube-reserved memory=256MB", exitUsage, "memory=256Mi"}, {"userdata render --join-file DIR/worker.env --http-proxy proxy:3128", exitUsage, "http://proxy.example.net:3128"}, {"userdata render --join-file DIR/worker.env --mirror mirror.example.net", exitUsage, "http:// or https://"},
	{"userdata render --join-file DIR/worker.env --cluster-dns 10.0.0.300", exitUsage, "10.96.0.10"}, {"userdata render --join-file DIR/worker.env --instance-store raid0 --cloud openstack", exitUsage, "leave it out on openstack"}, {"userdata render --join-file DIR/worker.env --image-repository https://registry.example.net", exitUsage, "without a scheme"},
	{"userdata render --join-file DIR/worker.env --before-join DIR/bom.env", exitUsage, "byte order mark"}, {"userdata render --join-file DIR/worker.env --attest leader.example.net:6444 --ca-file DIR/empty", exitUsage, "no certificate in PEM"}, {"userdata render --join-file DIR/worker.env --attest leader.example.net:6444 --ca-file DIR", exitFailed, "name a file"},
	{"userdata render --join-file DIR/worker.env --os rocky-9 --format ignition", exitUsage, "does not read Ignition"}, {"userdata render --join-file DIR/worker.env --versions DIR/worker.env", exitFailed, "NAME VERSION ARCH SHA256 SOURCE"}, {"userdata render --from DIR/empty", exitFailed, "no join section"},
	{"userdata lint DIR/worker.env DIR/empty", exitUsage, "name one file"}, {"leader-config --endpoint k8s.example.net:0 --kubernetes-version v1.36.3", exitUsage, "host:port, for example"}, {"leader-config --endpoint https://k8s.example.net:6443 --kubernetes-version v1.36.3", exitUsage, "host:port, for example"},
	{"leader-config --endpoint k8s.example.net:6443 --kubernetes-version 1.36.3", exitUsage, "v1.36.3"}, {"leader-config --endpoint k8s.example.net:6443 --kubernetes-version v1.29.0", exitUsage, "too old"}, {"leader-config --endpoint k8s.example.net:6443 --kubernetes-version v1.36.3 --kube-vip eth0", exitUsage, "give the address as the endpoint"},
	{"leader-config --endpoint k8s.example.net:6443 --kubernetes-version v1.36.3 --cloud-controller azure", exitUsage, "use aws, openstack"}, {"leader-config --endpoint k8s.example.net:6443 --kubernetes-version v1.36.3 --join --pod-subnet 10.0.0.0/16", exitUsage, "leave it out with --join"}, {"leader-config --endpoint k8s.example.net:6443 --kubernetes-version v1.36.3 --before-init DIR/garbage", exitUsage, "#!/bin/sh"},
	{"leader-config --endpoint k8s.example.net:6443 --kubernetes-version v1.36.3 --after-init DIR/groups.yaml", exitUsage, "#!/bin/sh"}, {"rollout pause", exitUsage, "say which group, or --all"}, {"rollout status a b", exitUsage, "say one group"},
	{"node replace", exitUsage, "say which node"}, {"token list asa003", exitUsage, "one argument too many"}, {"token revoke asa003;rm", exitUsage, "no ID of a token"},
	{"completion bash zsh", exitUsage, "bash, zsh or fish"},
	{"version --verbose", exitUsage, "there is no flag"}, {"version -o", exitUsage, "--help"}, {"--help-me", exitUsage, "there is no flag"}, {"-x", exitUsage, "there is no flag"},
}

func TestBadInputs(t *testing.T) {
	seen := map[string]bool{}
	once := func(t *testing.T, input string) {
		if seen[input] {
			t.Errorf("%q stands twice", input)
		}
		seen[input] = true
	}
	for _, c := range badSettings() {
		t.Run(c[0], func(t *testing.T) {
			once(t, c[0])
			badInput(t, c[0], "", c[1])
		})
	}
	for _, c := range badGroups {
		t.Run(c[0], func(t *testing.T) {
			once(t, c[0])
			file := filepath.Join(t.TempDir(), "groups.yaml")
			if err := os.WriteFile(file, []byte(c[0]), 0o600); err != nil {
				t.Fatal(err)
			}
			badInput(t, "AUTOSCALER_GROUPS_FILE="+file+"\n", file+":", c[1])
		})
	}
	for _, c := range badCommands {
		t.Run(c.line, func(t *testing.T) {
			once(t, c.line)
			badCommand(t, c.line, c.code, c.want)
		})
	}
	if len(seen) < 540 {
		t.Errorf("only %d inputs", len(seen))
	}
}

// plain clears the agent's own variables; they are restored at the end of the test.
func plain(t *testing.T) {
	t.Helper()
	for _, pair := range os.Environ() {
		if name, value, _ := strings.Cut(pair, "="); strings.HasPrefix(name, "AUTOSCALER_") || name == "KUBECONFIG" {
			t.Setenv(name, value)
			_ = os.Unsetenv(name) // fails only for a bad name
		}
	}
}

// badInput starts the agent with a text of agent.env.
func badInput(t *testing.T, text, file, want string) {
	t.Helper()
	plain(t)
	for line := range strings.SplitSeq(text, "\n") { // what the command sets is put back
		if name, _, ok := strings.Cut(line, "="); ok && (strings.HasPrefix(name, "AUTOSCALER_") || strings.HasSuffix(strings.ToUpper(name), "_PROXY")) && !strings.Contains(name, "É") { // systemd takes no such name
			t.Setenv(name, "")
		}
	}
	if !strings.Contains(text, "AUTOSCALER_AWS_CLUSTER_NAME=") {
		t.Setenv("AUTOSCALER_AWS_CLUSTER_NAME", "demo")
	}
	env := filepath.Join(t.TempDir(), "agent.env")
	if err := os.WriteFile(env, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	var out, errout bytes.Buffer
	code := execute(t.Context(), []string{"run", "--env-file", env}, &out, &errout)
	if code != exitConfig || !strings.Contains(errout.String(), want) || !strings.Contains(errout.String(), file) {
		t.Errorf("code %d, want %d and %q: %s", code, exitConfig, want, errout.String())
	}
	if n := strings.Count(errout.String(), "\n"); n != 1 {
		t.Errorf("%d lines: %s", n, errout.String())
	}
	if strings.Contains(strings.ReplaceAll(errout.String(), env, ""), "hunter2") {
		t.Errorf("a secret is printed: %s", errout.String())
	}
	if after, err := os.ReadFile(env); err != nil || string(after) != text {
		t.Errorf("the file is %q, %v", after, err)
	}
}

// badCommand runs a command line in a directory with some files, which it leaves as they are.
func badCommand(t *testing.T, line string, code int, want string) {
	t.Helper()
	plain(t)
	dir := t.TempDir()
	base := "AUTOSCALER_AWS_CLUSTER_NAME=demo\nAUTOSCALER_KUBECONFIG=/does/not/exist\nAUTOSCALER_SOCKET=off\nAUTOSCALER_LISTEN=off\nAUTOSCALER_STATE_DIR="
	files := map[string]string{
		"garbage": "\x1f\x8bgarbage", "worker.env": "JOIN_TOKEN=abcdef.0123456789abcdef\nJOIN_CERT_HASH=sha256:" + strings.Repeat("a", 64) + "\nJOIN_ENDPOINT=10.0.0.1:6443\nJOIN_KUBERNETES_VERSION=v1.36.3\n",
		"good.env": base + dir + "\n", "groups.yaml": "groups: {a: {prise: 1}}\n",
		"groups.env": base + dir + "\nAUTOSCALER_GROUPS_FILE=" + dir + "/groups.yaml\n", "groupsdir.env": base + dir + "\nAUTOSCALER_GROUPS_FILE=" + dir + "\n",
	}
	const kube = "apiVersion: v1\nkind: Config\nclusters: [{name: c, cluster: {server: 'https://127.0.0.1:1'}}]\nusers: [{name: u, user: %s}]\ncontexts: [{name: x, context: {cluster: c, user: u}}]\ncurrent-context: x\n"
	files["away"], files["exec"] = fmt.Sprintf(kube, "{}"), fmt.Sprintf(kube, "{exec: {apiVersion: client.authentication.k8s.io/v1, command: not-there, interactiveMode: Never}}")
	files["bom.env"], files["twice.env"] = "\ufeff"+files["worker.env"], files["worker.env"]+"JOIN_ENDPOINT=10.0.0.2:6443\n"
	files["broken.sh"] = "#!/bin/sh\nif true; then\n  echo\n"
	files["empty"], files["pipegroups.env"] = "", base+dir+"\nAUTOSCALER_GROUPS_FILE="+dir+"/pipe\n"
	for name, path := range map[string]string{"file": "/garbage", "loop": "/loop", "below": "/garbage/state"} {
		files[name+"state.env"] = base + dir + path + "\n"
	}
	for _, name := range []string{"pipe", "garbage", "away", "exec", "dir"} {
		files[name+"kube.env"] = strings.Replace(base, "/does/not/exist", filepath.Join(dir, strings.TrimPrefix(name, "dir")), 1) + dir + "\n"
	}
	if err := errors.Join(syscall.Mkfifo(filepath.Join(dir, "pipe"), 0o600), os.Symlink("loop", filepath.Join(dir, "loop"))); err != nil {
		t.Fatal(err)
	}
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range []string{"AWS_CLUSTER_NAME", "KUBECONFIG", "SOCKET", "LISTEN", "STATE_DIR", "GROUPS_FILE"} { // what the command sets is put back
		t.Setenv("AUTOSCALER_"+name, "")
	}
	var out, errout bytes.Buffer
	got := execute(t.Context(), strings.Fields(strings.ReplaceAll(line, "DIR", dir)), &out, &errout)
	said := errout.String()
	if got != code || !strings.Contains(said, strings.ReplaceAll(want, "DIR", dir)) || said == "" {
		t.Errorf("code %d, want %d and %q:\n%s%s", got, code, want, said, out.String())
	}
	if n := strings.Count(said, "\n"); n != 1 && !strings.Contains(said, "Usage:") {
		t.Errorf("%d lines: %s", n, said)
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		if !e.Type().IsRegular() {
			continue // the named pipe and the symlink
		}
		text, err := os.ReadFile(filepath.Join(dir, e.Name()))
		if want, known := files[e.Name()]; !known && e.Name() != "lock" || known && (err != nil || string(text) != want) {
			t.Errorf("%s is left behind or changed: %q, %v", e.Name(), text, err)
		}
	}
	if _, err := os.Stat("/proc/worker.sh"); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("/proc/worker.sh: %v", err)
	}
}

// TestEmptyFlags: each flag of each command says its name when it is given without a value, as
// --kubernetes-version "$VERSION" is where VERSION is not set. Amounts may be empty: nothing is
// reserved then.
func TestEmptyFlags(t *testing.T) {
	tried := 0
	var visit func(root, c *cobra.Command)
	visit = func(root, c *cobra.Command) {
		if c != root && (c.PersistentPreRun != nil || c.PersistentPreRunE != nil) {
			t.Errorf("%s: its own hook hides the root's, which refuses empty flags", c.CommandPath())
		}
		for _, sub := range c.Commands() {
			visit(root, sub)
		}
		var names []string
		c.Flags().VisitAll(func(f *pflag.Flag) {
			if f.Name != "help" && f.Value.Type() != "amounts" {
				names = append(names, f.Name)
			}
		})
		for _, name := range names {
			fresh, _, err := newRoot().Find(strings.Fields(c.CommandPath())[1:]) // a flag keeps its value
			if err != nil {
				t.Fatal(err)
			}
			if err := fresh.ParseFlags([]string{"--" + name + "="}); err != nil {
				err = fresh.FlagErrorFunc()(fresh, err)
				if !strings.Contains(err.Error(), "--"+name+" is \"\"") {
					t.Errorf("%s --%s: %v", c.CommandPath(), name, err)
				}
			} else if err := root.PersistentPreRunE(fresh, nil); err == nil || !strings.Contains(err.Error(), "--"+name+" is empty: leave it out, or write its value: ") {
				t.Errorf("%s --%s: %v", c.CommandPath(), name, err)
			}
			tried++
		}
	}
	root := newRoot()
	visit(root, root)
	if tried < 100 {
		t.Errorf("only %d flags were tried", tried)
	}
	for _, args := range [][]string{
		{"userdata", "render", "--kubernetes-version", ""}, {"userdata", "render", "--os="}, {"iam-policy", "--cluster", " "}, {"iam-policy", "--groups", ","},
		{"plan", "--env-file", ""}, {"explain", "pod", "a/b", "--socket", ""}, {"leader-config", "-o", ""},
	} {
		var out, errout bytes.Buffer
		if code := execute(t.Context(), args, &out, &errout); code != exitUsage || out.Len() > 0 || !strings.Contains(errout.String(), " is empty: leave it out") || strings.Count(errout.String(), "\n") != 1 {
			t.Errorf("%q: exit code %d, %q, %q", args, code, out.String(), errout.String())
		}
	}
}
