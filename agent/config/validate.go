package config

import (
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"
	"time"

	"github.com/sirupsen/logrus"

	"github.com/autoscaler-agent/autoscaler-agent/agent/plan"
	"github.com/autoscaler-agent/autoscaler-agent/agent/provider/all"
)

// socketLimit is the longest path of a unix socket on Linux: sun_path without its NUL.
const socketLimit = 107

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
	return errors.Join(append(errs, c.Services.validate(c.Provider))...)
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

// Flatten takes a tree of joined errors apart.
func Flatten(err error) []error {
	if err == nil {
		return nil
	}
	if joined, ok := err.(interface{ Unwrap() []error }); ok {
		var out []error
		for _, e := range joined.Unwrap() {
			out = append(out, Flatten(e)...)
		}
		return out
	}
	return []error{err}
}
