package config

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
	"github.com/autoscaler-agent/autoscaler-agent/internal/quantity"
)

// Kubelet is what the workers' kubelets keep back. The generated user data
// configures them with the same values.
type Kubelet struct {
	KubeReserved   Amounts    `split_words:"true" default:"cpu=100m,memory=256Mi" desc:"What the workers' kubelets keep for themselves, as the kubelet's --kube-reserved."`
	SystemReserved Amounts    `split_words:"true" default:"cpu=100m,memory=256Mi" desc:"What they keep for the system, as --system-reserved."`
	EvictionHard   Thresholds `split_words:"true" default:"memory.available<100Mi,nodefs.available<10%" desc:"When they evict pods, as --eviction-hard."`
	MaxPods        int64      `split_words:"true" default:"110" range:"1..10000" desc:"Most pods on a worker."`
}

// Reservation is k in the words of agent/cluster.
func (k Kubelet) Reservation() cluster.Reservation {
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
	seen := names{}
	for _, item := range splitList(value) {
		name, text, ok := strings.Cut(item, "=")
		n, err := quantity.Parse(name, text)
		if !ok || err != nil {
			return fmt.Errorf("%q is no amount: write for example cpu=100m,memory=256Mi", item)
		}
		if err := seen.once(name, item); err != nil {
			return err
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

// names are the names of a list that have been read.
type names map[string]bool

// once refuses a name that an item of the list repeats.
func (n names) once(name, item string) error {
	if n[name] {
		return fmt.Errorf("%q: %s is given twice: keep one", item, name)
	}
	n[name] = true
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
	seen := names{}
	for _, item := range splitList(value) {
		signal, text, ok := strings.Cut(item, "<")
		if !ok {
			return fmt.Errorf("%q is no threshold: write for example memory.available<100Mi,nodefs.available<10%%", item)
		}
		if err := seen.once(signal, item); err != nil {
			return err
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

// LoadKubelet reads AUTOSCALER_KUBELET_* alone from the process's environment: what
// the user data must tell the kubelets is what the agent computes with.
func LoadKubelet() (Kubelet, error) {
	var c Config
	err := process(&c)
	return c.Kubelet, err
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
