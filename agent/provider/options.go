package provider

import (
	"errors"
	"maps"
	"strconv"
	"time"

	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
	"github.com/autoscaler-agent/autoscaler-agent/internal/schedule"
)

// SetOption reads one of Cluster Autoscaler's per-group options by the name that its tags,
// annotations and labels end with. An option that is not known, or whose value cannot be
// read, is an error that says what to write, and changes nothing.
func SetOption(o *cluster.Options, name, value string) error {
	switch name {
	case "scaledownutilizationthreshold":
		return set(&o.ScaleDownUtilization, value, ratio)
	case "scaledowngpuutilizationthreshold":
		return set(&o.ScaleDownGPUUtilization, value, ratio)
	case "scaledownunneededtime":
		return set(&o.ScaleDownUnneededTime, value, duration)
	case "scaledownunreadytime":
		return set(&o.ScaleDownUnreadyTime, value, duration)
	case "maxnodeprovisiontime":
		return set(&o.MaxNodeProvisionTime, value, duration)
	case "maxnodestartuptime":
		return set(&o.MaxNodeStartupTime, value, duration)
	case "ignoredaemonsetsutilization":
		return set(&o.IgnoreDaemonSetsUtilization, value, yes)
	case "drift":
		return set(&o.Drift, value, yes)
	case "maxnodeage":
		return set(&o.MaxNodeAge, value, duration)
	case "repairafter":
		return set(&o.RepairAfter, value, duration)
	case "replacedraintime":
		return set(&o.ReplaceDrainTime, value, duration)
	case "disruptionbudgets":
		list, err := schedule.Parse(value)
		if err == nil {
			o.Budgets = &list
		}
		return err
	}
	return errors.New("the option is not known; known are scaledownutilizationthreshold, scaledowngpuutilizationthreshold, " +
		"scaledownunneededtime, scaledownunreadytime, maxnodeprovisiontime, maxnodestartuptime, ignoredaemonsetsutilization, " +
		"drift, maxnodeage, repairafter, replacedraintime, disruptionbudgets")
}

func set[T any](to **T, value string, read func(string) (T, error)) error {
	v, err := read(value)
	if err == nil {
		*to = &v
	}
	return err
}

func ratio(s string) (float64, error) {
	f, err := strconv.ParseFloat(s, 64)
	if err != nil || !(f >= 0 && f <= 1) {
		return 0, errors.New("write a number from 0 to 1, for example 0.5")
	}
	return f, nil
}

func yes(s string) (bool, error) {
	b, err := strconv.ParseBool(s)
	if err != nil {
		return false, errors.New("write true or false")
	}
	return b, nil
}

func duration(s string) (time.Duration, error) {
	d, err := time.ParseDuration(s)
	if err != nil || d < 0 {
		return 0, errors.New("write a duration, for example 10m0s")
	}
	return d, nil
}

// LayResources lays amounts by their Kubernetes names over a capacity: cpu in thousandths
// of a core, all others in whole units. r is not changed.
func LayResources(r cluster.Resources, amounts map[string]int64) cluster.Resources {
	r.Extended = maps.Clone(r.Extended)
	for name, n := range amounts {
		switch name {
		case "cpu":
			r.MilliCPU = n
		case "memory":
			r.Memory = n
		case "ephemeral-storage":
			r.EphemeralStorage = n
		case "pods":
			r.Pods = n
		default:
			if r.Extended == nil {
				r.Extended = map[string]int64{}
			}
			r.Extended[name] = n
		}
	}
	return r
}
