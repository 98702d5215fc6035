package clusterapi

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
)

// parseOptions reads the autoscaling-options annotations. One that cannot be read is
// left out and named in a warning.
func parseOptions(prefix string, annotations map[string]string) (cluster.Options, []string) {
	var (
		o        cluster.Options
		warnings []string
	)
	for _, key := range slices.Sorted(maps.Keys(annotations)) {
		name, ok := strings.CutPrefix(key, prefix)
		if !ok {
			continue
		}
		value := annotations[key]
		var err error
		switch name {
		case "scaledownutilizationthreshold":
			o.ScaleDownUtilization, err = ratio(value)
		case "scaledowngpuutilizationthreshold":
			o.ScaleDownGPUUtilization, err = ratio(value)
		case "scaledownunneededtime":
			o.ScaleDownUnneededTime, err = duration(value)
		case "scaledownunreadytime":
			o.ScaleDownUnreadyTime, err = duration(value)
		case "maxnodeprovisiontime":
			o.MaxNodeProvisionTime, err = duration(value)
		case "maxnodestartuptime":
			o.MaxNodeStartupTime, err = duration(value)
		case "ignoredaemonsetsutilization":
			o.IgnoreDaemonSetsUtilization, err = yes(value)
		default:
			err = errors.New("the option is not known; known are scaledownutilizationthreshold, scaledowngpuutilizationthreshold, " +
				"scaledownunneededtime, scaledownunreadytime, maxnodeprovisiontime, maxnodestartuptime, ignoredaemonsetsutilization")
		}
		if err != nil {
			warnings = append(warnings, leftOut(key, value, err))
		}
	}
	return o, warnings
}

func leftOut(key, value string, err error) string {
	return fmt.Sprintf("annotation %s=%q is left out: %v", key, value, err)
}

func ratio(s string) (*float64, error) {
	f, err := strconv.ParseFloat(s, 64)
	if err != nil || !(f >= 0 && f <= 1) {
		return nil, errors.New("write a number from 0 to 1, for example 0.5")
	}
	return &f, nil
}

func yes(s string) (*bool, error) {
	b, err := strconv.ParseBool(s)
	if err != nil {
		return nil, errors.New("write true or false")
	}
	return &b, nil
}

func duration(s string) (*time.Duration, error) {
	d, err := time.ParseDuration(s)
	if err != nil || d < 0 {
		return nil, errors.New("write a duration, for example 10m0s")
	}
	return &d, nil
}
