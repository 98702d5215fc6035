package config

import (
	_ "embed"
	"strings"
	"sync"
)

// caFlags are Cluster Autoscaler's flags with a variable here, by the flag's name.
var caFlags = map[string]string{
	"address":                                "LISTEN",
	"allowed-scheduler-names":                "OBSERVE_SCHEDULERS",
	"balance-similar-node-groups":            "SCALING_BALANCE_SIMILAR_NODE_GROUPS",
	"balancing-ignore-label":                 "SCALING_BALANCE_IGNORE_LABELS",
	"balancing-label":                        "SCALING_BALANCE_LABELS",
	"bypassed-scheduler-names":               "OBSERVE_SCHEDULERS",
	"cloud-config":                           "OPENSTACK_CLOUD_CONFIG",
	"cloud-provider":                         "PROVIDER",
	"cluster-name":                           "AWS_CLUSTER_NAME",
	"clusterapi-cloud-config-authoritative":  "CLUSTERAPI_CLOUD_CONFIG_AUTHORITATIVE",
	"cores-total":                            "SCALING_MAX_CORES_TOTAL",
	"daemonset-eviction-for-empty-nodes":     "SCALING_DAEMONSET_EVICTION_FOR_EMPTY_NODES",
	"daemonset-eviction-for-occupied-nodes":  "SCALING_DAEMONSET_EVICTION_FOR_OCCUPIED_NODES",
	"drain-priority-config":                  "SCALING_DRAIN_PRIORITY_CONFIG",
	"enforce-node-group-min-size":            "SCALING_ENFORCE_MIN",
	"expander":                               "SCALING_EXPANDER",
	"expendable-pods-priority-cutoff":        "SCALING_EXPENDABLE_PODS_CUTOFF",
	"gpu-total":                              "SCALING_GPU_TOTAL",
	"ignore-taint":                           "SCALING_STARTUP_TAINTS",
	"startup-taint":                          "SCALING_STARTUP_TAINTS",
	"status-taint":                           "SCALING_STATUS_TAINTS",
	"ignore-daemonsets-utilization":          "SCALING_IGNORE_DAEMONSETS_UTILIZATION",
	"initial-node-group-backoff-duration":    "SCALING_BACKOFF_INITIAL",
	"kubeconfig":                             "KUBECONFIG",
	"kubernetes":                             "KUBECONFIG",
	"leader-elect-lease-duration":            "LEASE_DURATION",
	"leader-elect-renew-deadline":            "LEASE_RENEW_DEADLINE",
	"leader-elect-resource-name":             "LEASE_NAME",
	"leader-elect-resource-namespace":        "LEASE_NAMESPACE",
	"leader-elect-retry-period":              "LEASE_RETRY_PERIOD",
	"max-bulk-soft-taint-count":              "SCALING_MAX_BULK_SOFT_TAINT_COUNT",
	"max-drain-parallelism":                  "SCALING_MAX_DRAIN_AT_ONCE",
	"max-empty-bulk-delete":                  "SCALING_MAX_EMPTY_AT_ONCE",
	"max-graceful-termination-sec":           "SCALING_MAX_GRACEFUL_TERMINATION",
	"max-node-group-backoff-duration":        "SCALING_BACKOFF_MAX",
	"max-node-provision-time":                "SCALING_MAX_NODE_PROVISION_TIME",
	"max-node-startup-time":                  "SCALING_MAX_NODE_STARTUP_TIME",
	"max-nodes-total":                        "SCALING_MAX_NODES_TOTAL",
	"max-pod-eviction-time":                  "SCALING_MAX_POD_EVICTION_TIME",
	"max-scale-down-parallelism":             "SCALING_MAX_EMPTY_AT_ONCE",
	"max-total-unready-percentage":           "SCALING_MAX_TOTAL_UNREADY_PERCENT",
	"memory-total":                           "SCALING_MAX_MEMORY_TOTAL",
	"namespace":                              "LEASE_NAMESPACE",
	"new-pod-scale-up-delay":                 "SCALING_NEW_POD_DELAY",
	"node-delete-delay-after-taint":          "SCALING_DELAY_AFTER_TAINT",
	"node-deletion-delay-timeout":            "SCALING_NODE_DELETION_DELAY_TIMEOUT",
	"node-group-auto-discovery":              "AWS_AUTO_DISCOVERY",
	"node-group-backoff-reset-timeout":       "SCALING_BACKOFF_RESET",
	"nodes":                                  "AWS_GROUPS",
	"ok-total-unready-count":                 "SCALING_OK_TOTAL_UNREADY",
	"pending-pods-batching-timeout":          "SCALER_QUIET",
	"scale-down-delay-after-add":             "SCALING_DELAY_AFTER_ADD",
	"scale-down-delay-after-failure":         "SCALING_DELAY_AFTER_FAILURE",
	"scale-down-enabled":                     "SCALING_SCALE_DOWN",
	"scale-down-gpu-utilization-threshold":   "SCALING_GPU_UTILIZATION_THRESHOLD",
	"scale-down-unneeded-time":               "SCALING_UNNEEDED_FOR",
	"scale-down-unready-enabled":             "SCALING_SCALE_DOWN_UNREADY",
	"scale-down-unready-time":                "SCALING_UNREADY_FOR",
	"scale-down-utilization-threshold":       "SCALING_UTILIZATION_THRESHOLD",
	"scan-interval":                          "SCALER_IDLE",
	"skip-nodes-with-custom-controller-pods": "SCALING_SKIP_NODES_WITH_CUSTOM_CONTROLLER_PODS",
	"skip-nodes-with-local-storage":          "SCALING_SKIP_NODES_WITH_LOCAL_STORAGE",
	"skip-nodes-with-system-pods":            "SCALING_SKIP_NODES_WITH_SYSTEM_PODS",
	"v":                                      "LOG_LEVEL",
	"write-status-configmap":                 "SCALER_STATUS_CONFIG_MAP",
}

//go:embed caflags.txt
var caFlagsText string

// caElsewhere are Cluster Autoscaler's flags without a variable here, each with the reason.
var caElsewhere = sync.OnceValue(func() map[string]string {
	out := map[string]string{}
	for line := range strings.Lines(caFlagsText) {
		if flag, why, ok := strings.Cut(strings.TrimSpace(line), " "); ok && flag != "#" {
			out[flag] = why
		}
	}
	return out
})

// FromClusterAutoscaler is the variable for a flag of Cluster Autoscaler, written as the
// flag ("--scale-down-unneeded-time") or as a variable, with this agent's prefix or
// without; empty: the name is none of its flags, or the flag has no variable here.
func FromClusterAutoscaler(name string) string {
	flag := caFlag(name)
	// A short word is another program's variable as likely as a flag.
	if ours := caFlags[flag]; ours != "" && (ofAutoscaler(name) || strings.Contains(flag, "-")) {
		return Prefix + "_" + ours
	}
	return ""
}

// AnswerToFlag says what to do with a flag of Cluster Autoscaler, written as
// FromClusterAutoscaler takes it; empty: the name is none of its flags.
func AnswerToFlag(name string) string {
	if ours := FromClusterAutoscaler(name); ours != "" {
		return "is Cluster Autoscaler's name: write " + ours
	}
	flag := caFlag(name)
	why := caElsewhere()[flag]
	// USER_AGENT may be any program's, and is no reason to refuse a file.
	if why == "" || !ofAutoscaler(name) && strings.Count(flag, "-") < 2 {
		return ""
	}
	if reason, cut := strings.CutPrefix(why, "not needed"); cut {
		return "is Cluster Autoscaler's, and is not needed here" + reason + "; remove it"
	}
	if reason, cut := strings.CutPrefix(why, "no: "); cut {
		return "is Cluster Autoscaler's, and is not supported here: " + reason + "; remove it"
	}
	return "is Cluster Autoscaler's, and is not supported here: use " + strings.TrimPrefix(why, "no flag: ")
}

// caFlag is a name in the spelling of Cluster Autoscaler's flags.
func caFlag(name string) string {
	flag := strings.ToLower(strings.TrimPrefix(strings.ToUpper(name), Prefix+"_"))
	return strings.ReplaceAll(strings.TrimLeft(flag, "-"), "_", "-")
}

// ofAutoscaler tells whether name is written as a flag or with this agent's prefix.
func ofAutoscaler(name string) bool {
	return strings.HasPrefix(name, "-") || strings.HasPrefix(strings.ToUpper(name), Prefix+"_")
}
