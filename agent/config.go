package agent

import (
	"errors"
	"fmt"
	"net"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/sirupsen/logrus"

	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
	"github.com/autoscaler-agent/autoscaler-agent/agent/decision"
	"github.com/autoscaler-agent/autoscaler-agent/agent/election"
	"github.com/autoscaler-agent/autoscaler-agent/agent/observe"
	"github.com/autoscaler-agent/autoscaler-agent/agent/plan"
	"github.com/autoscaler-agent/autoscaler-agent/agent/provider/all"
	"github.com/autoscaler-agent/autoscaler-agent/agent/quantity"
)

// Config is everything that an operator may set, each part declared beside the code
// that reads it. Load fills it from AUTOSCALER_* variables.
type Config struct {
	// Provider names the cloud, or several with commas between them.
	Provider string `default:"asg"`
	// Kubeconfig is the path of the kubeconfig; see KubeconfigPath for what stands in.
	Kubeconfig string
	// StateDir holds state.json, which a restart reads.
	StateDir string `split_words:"true" default:"/var/lib/autoscaler-agent"`
	// GroupsFile is groups.yaml: prices, pauses, headroom and more; see package groups.
	GroupsFile string `split_words:"true" default:"/etc/autoscaler-agent/groups.yaml"`
	// Socket is the local API's unix socket; "off" for none.
	Socket string `default:"/run/autoscaler-agent/agent.sock"`
	// Listen is the address of metrics and health; "off" for none.
	Listen   string `default:"127.0.0.1:8085"`
	LogLevel string `split_words:"true" default:"info"`
	// NodeName is this machine's name in the Lease; empty: its host name.
	NodeName string `split_words:"true"`

	Lease   election.Config
	Scaler  ScalerConfig
	Scaling decision.Policy
	Observe observe.Config
	Kubelet KubeletConfig

	Parts
}

// ScalerConfig is the scaler service's own.
type ScalerConfig struct {
	Enabled bool `default:"true"`
	// DryRun decides and logs, and changes nothing.
	DryRun bool `split_words:"true" default:"false"`
	// StatusConfigMap keeps Cluster Autoscaler's status page in the ConfigMap
	// kube-system/cluster-autoscaler-status.
	StatusConfigMap bool `split_words:"true" default:"true"`
	// Quiet is how long the world must be silent before a round that something urgent
	// asked for; Cap is the longest that such a round waits from the first event.
	Quiet time.Duration `default:"200ms"`
	Cap   time.Duration `default:"800ms"`
	// Calm is how long a round waits that nothing urgent asked for.
	Calm time.Duration `default:"2s"`
	// Idle is the longest time without a round.
	Idle time.Duration `default:"30s"`
}

// KubeletConfig is what the workers' kubelets keep back. The generated user data
// configures them with the same values (DESIGN 4.2).
type KubeletConfig struct {
	KubeReserved   Amounts    `split_words:"true" default:"cpu=100m,memory=256Mi"`
	SystemReserved Amounts    `split_words:"true" default:"cpu=100m,memory=256Mi"`
	EvictionHard   Thresholds `split_words:"true" default:"memory.available<100Mi,nodefs.available<10%"`
	MaxPods        int64      `split_words:"true" default:"110"`
}

// Reservation is k as the house's own value.
func (k KubeletConfig) Reservation() cluster.Reservation {
	r := cluster.Reservation{Kube: cluster.Resources(k.KubeReserved), System: cluster.Resources(k.SystemReserved), MaxPods: k.MaxPods}
	r.Eviction, r.EvictionStoragePercent = k.EvictionHard.Amounts, k.EvictionHard.StoragePercent
	return r
}

// Amounts is a list like "cpu=100m,memory=256Mi,ephemeral-storage=1Gi", as the
// kubelet's flags take it.
type Amounts cluster.Resources

// Decode parses the list.
func (a *Amounts) Decode(value string) error {
	*a = Amounts{}
	for _, item := range splitList(value) {
		name, text, ok := strings.Cut(item, "=")
		n, err := quantity.Parse(name, text)
		if !ok || err != nil {
			return fmt.Errorf("%q is no amount: write for example cpu=100m,memory=256Mi", item)
		}
		switch name {
		case "cpu":
			a.MilliCPU = n
		case "memory":
			a.Memory = n
		case "ephemeral-storage":
			a.EphemeralStorage = n
		case "pid":
		default:
			return fmt.Errorf("%q: only cpu, memory, ephemeral-storage and pid can be reserved", name)
		}
	}
	return nil
}

// Thresholds is a list like "memory.available<100Mi,nodefs.available<10%", as the
// kubelet's --eviction-hard takes it. Signals that reserve nothing
// (nodefs.inodesFree, imagefs.available, pid.available) are accepted and ignored.
type Thresholds struct {
	Amounts        cluster.Resources
	StoragePercent int64
}

// Decode parses the list.
func (t *Thresholds) Decode(value string) error {
	*t = Thresholds{}
	for _, item := range splitList(value) {
		signal, text, ok := strings.Cut(item, "<")
		if !ok {
			return fmt.Errorf("%q is no threshold: write for example memory.available<100Mi,nodefs.available<10%%", item)
		}
		percent, isPercent := strings.CutSuffix(text, "%")
		var amount int64
		if isPercent {
			n, err := strconv.ParseInt(percent, 10, 64)
			if err != nil || n < 0 || n > 100 {
				return fmt.Errorf("%q: a percentage is a whole number from 0 to 100", item)
			}
			amount = n
		} else {
			n, err := quantity.Parse("", text)
			if err != nil {
				return fmt.Errorf("%q: %w", item, err)
			}
			amount = n
		}
		switch {
		case signal == "memory.available" && isPercent:
			return fmt.Errorf("%q: give memory.available in bytes, for example 100Mi: machines of a group may differ", item)
		case signal == "memory.available":
			t.Amounts.Memory = amount
		case signal == "nodefs.available" && isPercent:
			t.StoragePercent = amount
		case signal == "nodefs.available":
			t.Amounts.EphemeralStorage = amount
		case signal == "nodefs.inodesFree", signal == "imagefs.available", signal == "imagefs.inodesFree", signal == "pid.available":
		default:
			return fmt.Errorf("%q: no such eviction signal", signal)
		}
	}
	return nil
}

func splitList(value string) []string {
	var out []string
	for item := range strings.SplitSeq(value, ",") {
		if item = strings.TrimSpace(item); item != "" {
			out = append(out, item)
		}
	}
	return out
}

// Secret is a string that prints as [secret] under every verb.
type Secret string

// String hides the value.
func (Secret) String() string { return "[secret]" }

// GoString hides the value.
func (Secret) GoString() string { return "[secret]" }

// MarshalJSON hides the value.
func (Secret) MarshalJSON() ([]byte, error) { return []byte(`"[secret]"`), nil }

// Load reads and checks the configuration from the process's environment. The error
// joins everything that is wrong, each naming its variable and the remedy.
func Load() (Config, error) {
	var c Config
	err := process(&c)
	c.Parts.Bootstrap.TokenGroups = c.Parts.tokenGroups() // they go by the mode of the join
	return c, errors.Join(err, unknown(os.Environ()), unclosed(os.Environ()), c.Validate())
}

// unclosed finds values that run over the end of their line.
func unclosed(environ []string) error {
	var errs []error
	for _, kv := range environ {
		name, value, _ := strings.Cut(kv, "=")
		if strings.HasPrefix(name, Prefix+"_") && strings.ContainsAny(value, "\r\n") {
			errs = append(errs, fmt.Errorf("%s holds a line break: close the quote that opens its value in the environment file", name))
		}
	}
	return errors.Join(errs...)
}

// socketLimit is the longest path of a unix socket on Linux: sun_path without its NUL.
const socketLimit = 107

// LoadKubelet reads AUTOSCALER_KUBELET_* alone from the process's environment: what
// the user data must tell the kubelets is what the agent computes with.
func LoadKubelet() (KubeletConfig, error) {
	var c Config
	err := process(&c)
	return c.Kubelet, err
}

// Validate returns everything that is wrong with c, joined.
func (c Config) Validate() error {
	var errs []error
	bad := func(name string, value any, remedy string) {
		errs = append(errs, fmt.Errorf("%s_%s is %v: %s", Prefix, name, value, remedy))
	}
	if _, err := all.Split(c.Provider); err != nil {
		bad("PROVIDER", fmt.Sprintf("%q", c.Provider), err.Error()+"; several are separated by commas")
	}
	if _, err := logrus.ParseLevel(c.LogLevel); err != nil {
		bad("LOG_LEVEL", fmt.Sprintf("%q", c.LogLevel), "use debug, info, warn or error")
	}
	if c.Listen != "off" {
		if _, _, err := net.SplitHostPort(c.Listen); err != nil {
			bad("LISTEN", fmt.Sprintf("%q", c.Listen), "write host:port, for example 127.0.0.1:8085, or off")
		}
	}
	if len(c.Socket) > socketLimit {
		bad("SOCKET", fmt.Sprintf("%q", c.Socket), fmt.Sprintf("a socket's path has at most %d characters, this one has %d: write a shorter one", socketLimit, len(c.Socket)))
	}
	if c.StateDir == "" || !strings.HasPrefix(c.StateDir, "/") {
		bad("STATE_DIR", fmt.Sprintf("%q", c.StateDir), "write an absolute path, for example /var/lib/autoscaler-agent")
	}
	for _, d := range []struct {
		name  string
		value time.Duration
		least time.Duration
	}{
		{"SCALER_QUIET", c.Scaler.Quiet, 0}, {"SCALER_CAP", c.Scaler.Cap, c.Scaler.Quiet}, {"SCALER_CALM", c.Scaler.Calm, 0},
		{"SCALER_IDLE", c.Scaler.Idle, time.Second}, {"OBSERVE_FAST", c.Observe.Fast, 100 * time.Millisecond},
		{"OBSERVE_SLOW", c.Observe.Slow, c.Observe.Fast}, {"OBSERVE_TIMEOUT", c.Observe.Timeout, time.Second},
		{"OBSERVE_STALE_AFTER", c.Observe.StaleAfter, c.Lease.RetryPeriod + time.Second},
		{"LEASE_RETRY_PERIOD", c.Lease.RetryPeriod, 100 * time.Millisecond},
		{"LEASE_RENEW_DEADLINE", c.Lease.RenewDeadline, c.Lease.RetryPeriod * 6 / 5},
		{"LEASE_DURATION", c.Lease.Duration, c.Lease.RenewDeadline + time.Second},
		{"SCALING_UNNEEDED_FOR", c.Scaling.UnneededFor, 0}, {"SCALING_MAX_NODE_PROVISION_TIME", c.Scaling.MaxNodeProvisionTime, time.Second},
	} {
		if d.value < d.least {
			bad(d.name, d.value, fmt.Sprintf("use %s or more", d.least))
		}
	}
	c.validateScaling(bad)
	if c.Kubelet.MaxPods < 1 {
		bad("KUBELET_MAX_PODS", c.Kubelet.MaxPods, "use 1 or more, for example 110")
	}
	return errors.Join(append(errs, c.Parts.validate(c.Provider))...)
}

// validateScaling reports what is wrong with the policy.
func (c Config) validateScaling(bad func(name string, value any, remedy string)) {
	if t := c.Scaling.UtilizationThreshold; t < 0 || t > 1 {
		bad("SCALING_UTILIZATION_THRESHOLD", t, "use a fraction from 0 to 1, for example 0.5")
	}
	if t := c.Scaling.GPUUtilizationThreshold; t < 0 || t > 1 {
		bad("SCALING_GPU_UTILIZATION_THRESHOLD", t, "use a fraction from 0 to 1, for example 0.5")
	}
	if unknown := plan.UnknownExpanders(c.Scaling.Expander); len(unknown) > 0 {
		bad("SCALING_EXPANDER", fmt.Sprintf("%q", c.Scaling.Expander), "use "+strings.Join(plan.Expanders(), ", ")+", or several of them, comma-separated")
	}
	for _, l := range []struct {
		name     string
		min, max int64
	}{{"CORES", c.Scaling.MinCoresTotal, c.Scaling.MaxCoresTotal}, {"MEMORY", c.Scaling.MinMemoryTotal, c.Scaling.MaxMemoryTotal}} {
		if l.min < 0 || l.max > 0 && l.min > l.max {
			bad("SCALING_MIN_"+l.name+"_TOTAL", l.min, fmt.Sprintf("use a number from 0 to AUTOSCALER_SCALING_MAX_%s_TOTAL, which is %d", l.name, l.max))
		}
	}
	if known := []string{"priced", "always", "off"}; !slices.Contains(known, c.Scaling.Consolidate) {
		bad("SCALING_CONSOLIDATE", fmt.Sprintf("%q", c.Scaling.Consolidate), "use "+strings.Join(known, ", "))
	}
	if s := c.Scaling.ConsolidateSaving; s < 0 || s >= 1 {
		bad("SCALING_CONSOLIDATE_SAVING", s, "use a fraction from 0 to below 1, for example 0.15")
	}
}

// KubeconfigPath is the kubeconfig to use: the configured one, KUBECONFIG, the
// agent's own; and, for commands that a person types, kubeadm's admin.conf last.
func (c Config) KubeconfigPath(typed bool) (string, error) {
	if c.Kubeconfig != "" {
		return c.Kubeconfig, nil
	}
	if p := os.Getenv("KUBECONFIG"); p != "" {
		return p, nil
	}
	candidates := []string{"/etc/autoscaler-agent/kubeconfig"}
	if typed {
		candidates = append(candidates, "/etc/kubernetes/admin.conf")
	}
	for _, p := range candidates {
		if _, err := os.Stat(p); err == nil {
			return p, nil
		}
	}
	return "", fmt.Errorf("no kubeconfig: set %s_KUBECONFIG to the path of one (looked for KUBECONFIG and %s)", Prefix, strings.Join(candidates, ", "))
}
